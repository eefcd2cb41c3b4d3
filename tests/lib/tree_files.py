"""Files below a directory, for tests that compare what came out."""
import os


def files_of(root):
    """Content by path below root, both of its type, but for what views keep."""
    kept = os.fsencode(".agentwal") if isinstance(root, bytes) else ".agentwal"
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != kept]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, root)] = file.read()
    return found
