"""EDGAR in bulk: all companies' facts, from the file that the SEC builds anew each night."""
