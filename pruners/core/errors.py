"""The errors a user may see. Each names the thing and the way out; the command line prints them without a traceback."""


class PruneBoardError(Exception):
    """A mistake in what the harness was given. Its text is all the user sees."""


class PrunerError(PruneBoardError):
    """A pruning method broke its contract, or failed, on a page."""


class CatalogError(PruneBoardError):
    """A method could not be found or loaded: unknown name, two of one name, a file that does not import."""


class ExpressionError(PruneBoardError):
    """The text form of a pruner, such as `adaptive(sap)`, could not be read."""
