"""Problems that others have reported of FRED, Alpaca and FINRA, each tried here, by its number in the list of them.

A line has a test, or a sentence why it needs none.

Alpaca
- 46, totals cut at a page: pages are followed to the null token
  tests/sources/test_alpaca.py::test_pages_are_followed_to_the_null_token_and_then_the_next_adjustment
- 47, the newest bars lost behind a cap of pages: an error, and nothing of it is applied
  tests/sources/test_alpaca.py::test_a_token_that_repeats_and_pages_without_end_are_errors_and_no_quiet_end
- 49, a batch that fails for one malformed symbol: that one is pending by itself
  tests/sources/test_alpaca_days.py::test_one_malformed_symbol_is_pending_by_itself_and_the_others_are_there
- 51, 403 for recent data on the free plan: the end is put back, and the refusal has its own name
  tests/sources/test_alpaca.py::test_what_is_too_fresh_for_the_free_plan_is_not_asked_for
  tests/sources/test_alpaca_days.py::test_a_feed_that_the_plan_lacks_ends_the_window_with_its_name_after_one_request
- 52, feeds mixed: the feed is in the key of every row
  tests/sources/test_alpaca.py::test_feeds_are_other_keys_other_units_and_other_rows
- 54, a split that looks like a crash: raw and adjusted rows say which they are
  tests/sources/test_alpaca.py::test_what_is_adjusted_and_how_is_in_every_row
  tests/sources/test_alpaca_days.py::test_a_split_has_the_whole_adjusted_history_of_its_symbol_read_again_once
- 56, a daily bar on the wrong date: New York's date by the rules of its zone
  tests/sources/test_alpaca.py::test_the_day_of_a_bar_is_new_yorks_by_the_rules_of_its_zone
- 57, minutes without a trade: gaps
  tests/sources/test_alpaca.py::test_minutes_without_a_trade_are_gaps_and_stay_gaps
- 59, keys of the wrong environment: said once, in words, without the key
  tests/sources/test_alpaca.py::test_a_key_that_is_not_accepted_is_said_so_once
  tests/sources/test_alpaca_days.py::test_the_key_is_in_no_row_no_word_and_no_log

FRED
- 61, a valid key refused in a hurry: a few slow tries before it is a matter of configuration
  tests/sources/test_fred_collecting.py::test_what_passes_by_itself_is_waited_for
- 62, more than 2,000 vintages: no request spans so many
  tests/sources/test_fred.py::test_a_stretch_never_holds_more_vintages_than_fred_answers_for
- 64, missing values: rows without a number, in each vintage
  tests/sources/test_fred.py::test_missing_values_are_rows_in_every_vintage
- 66, one bad series: it alone fails
  tests/sources/test_fred_collecting.py::test_one_bad_id_keeps_nobody_from_the_others_and_is_told_and_given_up
- 67, 504 and 429: tried again, the latter after its own wait
  tests/sources/test_fred_collecting.py::test_too_many_requests_wait_for_twenty_seconds
- 69, HTML from the CSV endpoint, which has no promise: it is not used; a page in place of data stops the host
  tests/sources/test_fred_collecting.py::test_a_block_page_stops_the_host
- 71, vintages that fail now and then: as 61
- 72, dates in another form: refused before anything is sent
  tests/sources/test_fred_collecting.py::test_a_date_that_is_none_is_refused_before_anything_is_asked
- 72b, a month that is never published: a row without a number, and nothing in between is made up
  tests/sources/test_fred_collecting.py::test_a_month_that_is_never_published_stays_a_row_without_a_number
- 72c, how late a series may be: by its frequency
  tests/sources/test_fred_collecting.py::test_how_old_a_series_may_be_goes_by_its_frequency

FINRA
- 74, volumes with decimals: exact to the sixth place
  tests/sources/test_finra.py::test_decimals_are_exact_to_the_sixth_place
- 76, 77, a day that was missed: asked for by the windows after it
  tests/engine/test_cycle_poll.py::test_a_catch_up_keeps_to_its_budget_and_the_checkpoint_to_whole_ground
- 79, a range that ends before it begins: refused, and not "no data"
  tests/operators/test_request.py::test_what_cannot_be_is_refused_in_words
"""

from __future__ import annotations

import re

from include.settings import ROOT


def test_every_test_that_the_table_names_exists() -> None:
    named = re.findall(r"(tests/[\w/]+\.py)::(\w+)", __doc__ or "")
    assert len(named) > 20
    missing = [f"{file}::{test}" for file, test in named if f"def {test}(" not in (ROOT / file).read_text("utf-8")]
    assert missing == []
