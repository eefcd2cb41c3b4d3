"""What a person saw in Droid, of ~/.factory/sessions/PROJECT/ID.jsonl."""
from claude import message
from shown import Session, jsonl


def sessions(root):
    for path, rows in jsonl(root):
        if rows and rows[0].get("type") == "session_start":
            items = [item for row in rows if row.get("type") == "message"
                     for item in message(row | {"type": row["message"].get("role")})]
            yield Session(rows[0].get("id") or rows[0].get("sessionId"), path, items, items)
