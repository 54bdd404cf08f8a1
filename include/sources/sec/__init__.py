"""SEC EDGAR: filings of the whole American market, with their documents, headers and XBRL facts."""
