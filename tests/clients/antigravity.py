"""What a person saw in Antigravity CLI, of brain/ID/.system_generated/logs/transcript.jsonl."""
import re

from shown import Session, jsonl

SAID = {"USER_INPUT", "PLANNER_RESPONSE", None}


def items_of(step):
    words, source, kind = step.get("content") or "", step.get("source"), step.get("type")
    if source in ("USER_EXPLICIT", "user") and kind in SAID:
        words = re.sub(r"<ADDITIONAL_METADATA>.*?</ADDITIONAL_METADATA>", "", words, flags=re.S)
        yield "user", re.sub(r"</?USER_REQUEST>", "", words), True
    elif source in ("MODEL", "planner") and kind in SAID:
        yield "thinking", step.get("thinking") or "", False
        yield "assistant", words, True
        for call in step.get("tool_calls") or ():
            yield "call", (call.get("name"), call.get("args")), True
    elif source in ("MODEL", "planner"):
        yield "result", words, True


def sessions(root):
    for path, rows in jsonl(root):
        if path.endswith("/transcript.jsonl"):
            items = [item for row in rows for item in items_of(row)]
            yield Session(path.split("/")[-4], path, items, items)
