"""What is made from rows and given to others: parquet files, the outbox, and publication to the Hub."""
