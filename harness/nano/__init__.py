"""nano: the embedded retriever, a ColPali of about two million parameters trained on minidocs pages.

`checkpoint` builds and writes the model, tokenizer and processor in the form `from_pretrained` reads; `batches` draws
training pages; `reading` and `contrast` are the two stages; `training` runs them; `measure` gives NDCG. Only training
needs this package: the shipped folder loads through the production loader like any other ColPali.
"""
