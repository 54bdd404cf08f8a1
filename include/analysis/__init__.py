"""The analysis of disclosures: every filing read by the language model once, at the right moment.

Promises: which filing is whose turn, and what became of it, is rows of `dartbrief.analysis_cache`, changed under the
claim's token alone. Never: a source is known by name, and nothing of Airflow is imported here.
"""
