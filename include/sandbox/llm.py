"""The language model: vLLM's Responses API with background jobs, its store in memory and its ways of going wrong.

Promises: a job is `queued` and then over, never `in_progress`; a name that the caller gives (`request_id`) is the
job's; a restart forgets all of them, and asking for one that is not known is a 404 in the API's words; lanes work
side by side, each on one job at a time, on the simulated clock. Never: a job is over before its time, and a text is
judged: what is said of a filing follows from its title.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World, json_answer

HOST = "llm.sandbox.invalid"
MODEL = "stand-in-8b"
JOB = re.compile(r"/v1/responses/(?P<name>[^/]+)(?P<cancel>/cancel)?")
NUMBER = re.compile(r"resp_(?P<number>[0-9]{14})_")
# Each way in which a job may come out; `good` is the usual one.
OUTCOMES = ("good", "stuck", "incomplete", "cut", "invalid", "english", "failed")


@dataclass
class Job:
    """One job: its name, what was asked, when it is over (None: never), how it comes out, and whether it was ended."""

    name: str
    number: str
    title: str
    company: str
    made: datetime
    over: datetime | None
    outcome: str
    is_cancelled: bool = False


@dataclass
class House:
    """How the server is set: seconds of a job, lanes, how many may wait (None: any number), whether names are taken."""

    seconds: float = 2.0
    lanes: int = 4
    queue: int | None = None
    takes_names: bool = True
    has_store: bool = True
    is_away: bool = False
    outcome: str = "good"
    # The next outcomes, whoever asks, and those of single filings, first things first.
    following: list[str] = field(default_factory=list)
    of: dict[str, list[str]] = field(default_factory=dict)


class Llm:
    """The stand-in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._forget_all()

    def _forget_all(self) -> None:
        self._house = House()
        self._jobs: dict[str, Job] = {}
        self._lanes: list[datetime] = []
        self._made: Counter[str] = Counter()
        self._most = 0

    def answer(self, call: Call) -> Answer:
        """Answer a call."""
        with self._lock:
            if self._house.is_away:
                return _error(503, "The server is overloaded or not ready yet.")
            if call.plain_path == "/v1/responses" and call.method == "POST":
                return self._create(call)
            found = JOB.fullmatch(call.plain_path)
            if found is None:
                return json_answer(404, {"detail": "Not Found"})
            job = self._jobs.get(found["name"])
            if job is None:
                return _error(404, f"Response with id '{found['name']}' not found.")
            if found["cancel"]:
                if job.is_cancelled or self._state(job, call.at) != "queued":
                    return _error(400, "Cannot cancel a synchronous response.")
                job.is_cancelled = True
            return json_answer(200, self._shown(job, call.at))

    def _create(self, call: Call) -> Answer:
        house = self._house
        try:
            asked = call.json()
            said = asked["input"] if isinstance(asked["input"], str) else asked["input"][0]["content"]
            form = asked["text"]["format"]["type"]
        except (ValueError, KeyError, TypeError, IndexError):
            return _error(400, "The request cannot be read.")
        if asked.get("background") and not (asked.get("store", True) and house.has_store):
            return _error(400, "background can only be used when `store` is true")
        if form != "json_schema":
            return _error(400, "This stand-in is asked for JSON by a schema.")
        waiting = sum(self._state(job, call.at) == "queued" for job in self._jobs.values())
        if house.queue is not None and waiting >= house.lanes + house.queue:
            return _error(503, "The request queue is full.")
        own = asked.get("request_id") if house.takes_names else None
        number = self._number(own, said)
        name = own or f"resp_{next(self._numbers):032x}"
        job = Job(name, number, _line(said, "제목"), _line(said, "회사"), call.at, None, self._outcome(number))
        job.over = None if job.outcome == "stuck" else self._seat(call.at)
        self._jobs[name] = job
        self._made[number] += 1
        self._most = max(self._most, waiting + 1)
        return json_answer(200, self._shown(job, call.at))

    def _number(self, own: str | None, said: str) -> str:
        found = NUMBER.match(own or "")
        return found["number"] if found else _line(said, "제목")

    def _outcome(self, number: str) -> str:
        house = self._house
        for waiting in (house.of.get(number), house.following):
            if waiting:
                return waiting.pop(0)
        return house.outcome

    def _seat(self, at: datetime) -> datetime:
        """Give a job to the lane that is free first, and return when it is over."""
        lanes = sorted(each for each in self._lanes if each > at)
        begins = at if len(lanes) < self._house.lanes else lanes[-self._house.lanes]
        over = begins + timedelta(seconds=self._house.seconds)
        self._lanes = [*lanes, over]
        return over

    def _state(self, job: Job, at: datetime) -> str:
        if job.is_cancelled:
            return "cancelled"
        if job.over is None or at < job.over:
            return "queued"
        return {"incomplete": "incomplete", "failed": "failed"}.get(job.outcome, "completed")

    def _shown(self, job: Job, at: datetime) -> dict[str, Any]:
        state = self._state(job, at)
        shown: dict[str, Any] = {
            "id": job.name, "object": "response", "created_at": int(job.made.timestamp()), "model": MODEL,
            "status": state, "background": True, "error": None, "incomplete_details": None, "instructions": None,
            "metadata": None, "output": [], "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto",
            "tools": [], "top_p": 1.0, "usage": None,
        }  # fmt: skip
        if state == "failed":
            shown["error"] = {"code": "server_error", "message": "The engine gave up on this request.\0"}
        if state == "incomplete":
            shown["incomplete_details"] = {"reason": "max_output_tokens"}
        if state in ("completed", "incomplete"):
            part: dict[str, Any] = {"type": "output_text", "text": _text(job), "annotations": [], "logprobs": None}
            message = {"id": f"msg_{job.name}", "type": "message", "role": "assistant", "status": state}
            shown["output"] = [{**message, "content": [part]}]
        return shown

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the server.

        Raises:
            SwitchError: the order cannot be read.
        """
        word, value = str(order.get("switch", "")), order.get("value")
        with self._lock:
            house = self._house
            if word == "outcome":
                self._choose(order)
            elif word == "restart":
                self._jobs.clear()
                self._lanes.clear()
            elif word in ("seconds", "lanes", "queue"):
                if value is not None and (not isinstance(value, int | float) or value < 0):
                    raise SwitchError('"value" is a number that is not negative')
                setattr(house, word, value)
            elif word in ("takes_names", "has_store", "is_away"):
                setattr(house, word, bool(order.get("is", True)))
            else:
                known = "outcome, restart, seconds, lanes, queue, takes_names, has_store, is_away"
                raise SwitchError(f"the model has no switch {word!r}; it has {known}")
        return self.view()

    def _choose(self, order: Mapping[str, Any]) -> None:
        outcomes = order.get("outcomes", [order.get("outcome")])
        if not isinstance(outcomes, list) or any(each not in OUTCOMES for each in outcomes):
            raise SwitchError(f'"outcome" (or each of "outcomes") is one of {", ".join(OUTCOMES)}')
        if order.get("rcept_no"):
            self._house.of[str(order["rcept_no"])] = list(outcomes)
        elif "outcomes" in order:
            self._house.following = list(outcomes)
        else:
            self._house.outcome = str(outcomes[0])

    def reset(self) -> None:
        """Forget all jobs and switches."""
        with self._lock:
            self._forget_all()

    def view(self) -> dict[str, Any]:
        """What was given to it and what it holds of that, by filing, and the most that were under way at once."""
        with self._lock:
            held = Counter(job.number for job in self._jobs.values() if not job.is_cancelled)
            known = {"jobs": len(self._jobs), "made": dict(self._made), "held": dict(held), "most_at_once": self._most}
            return {**known, **vars(self._house)}


def _line(said: str, name: str) -> str:
    found = re.search(rf"^{name}: *(.*)$", said, re.MULTILINE)
    return found[1].strip() if found else ""


def _text(job: Job) -> str:
    said: dict[str, Any] = {
        "summary": f"{job.company} 회사가 '{job.title}' 공시를 냈습니다.",
        "key_points": ["결정된 내용과 금액을 공시했습니다.", "일정은 원문에 있습니다."],
        "sentiment": ("positive", "neutral", "negative")[len(job.title) % 3],
    }
    if job.outcome == "invalid":
        said = {**said, "sentiment": "mixed"}
    if job.outcome == "english":
        said = {**said, "summary": "The company filed a notice.", "key_points": ["It was decided."]}
    text = json.dumps(said, ensure_ascii=False, indent=1)
    # What is cut may end within a character that JSON writes as two.
    end = {"cut": "\ud83d", "incomplete": ""}.get(job.outcome)
    return text if end is None else text[: len(text) // 2] + end


def _error(status: int, message: str) -> Answer:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json_answer(status, {"error": {"message": message, "type": kind, "param": None, "code": status}})


def upstream(world: World) -> Upstream:
    """The model as a stand-in; its API is below `/llm.sandbox.invalid/v1`."""
    llm = Llm()
    return Upstream(
        name="llm",
        hosts=(HOST,),
        answer=llm.answer,
        absent=lambda call: _error(404, "Response not found."),
        kind=lambda call: "submit" if call.method == "POST" and call.path == "/v1/responses" else "look",
        switch=llm.switch,
        view=llm.view,
        reset=llm.reset,
    )
