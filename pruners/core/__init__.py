"""What every pruning method stands on: the page, the contract, the checks, the catalogue. No method lives here."""
