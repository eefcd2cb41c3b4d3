"""Parts of Google's API, which Gemini CLI and Qwen Code write."""
import json

from shown import image


def output(response):
    """The text of a response to a call."""
    if isinstance(response, dict):
        for key in ("output", "error"):
            if isinstance(response.get(key), str):
                return response[key]
    return response if isinstance(response, str) else json.dumps(response)


def parts(role, content, shown=True):
    """The items of a content: a text, or parts."""
    for part in [content] if isinstance(content, (str, dict)) else content or ():
        part = {"text": part} if isinstance(part, str) else part
        if isinstance(part.get("text"), str):
            yield ("thinking", part["text"], False) if part.get("thought") is True else \
                (role, part["text"], shown)
        elif "functionCall" in part:
            yield "call", (part["functionCall"].get("name"), part["functionCall"].get("args")), True
        elif "functionResponse" in part:
            yield "result", output(part["functionResponse"].get("response")), True
            for inner in part["functionResponse"].get("parts") or ():
                yield from parts(role, inner)
        elif "inlineData" in part:
            yield image(part["inlineData"], shown)
        elif str(part.get("fileData", {}).get("mimeType")).startswith("image/"):
            yield image({"url": part["fileData"]["fileUri"]}, shown)
