"""Whether what is hidden comes back, on a folder of texts with personal data.

    python tests/benchmarks/privacy_round_trip.py FOLDER [LIMIT] [fast|balanced]

FOLDER holds `*.jsonl` or `*.jsonl.gz`, one `{"text": …}` a line; LIMIT is how many of each file. Printed are the shares
of texts that come back as they were, that stay as they are when they are hidden again (by another process, which
remembers nothing of the first time), and of JSON texts that stay JSON.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import cast

from sealab.server.privacy.detection.detect import Detector, DetectorOptions, Mode
from sealab.server.privacy.tokens.parts import Text
from sealab.server.privacy.tokens.sanitizer import Sanitizer
from sealab.server.privacy.tokens.structured import is_json
from sealab.skills_db.engine import open_database
from sealab.skills_db.vault import Vault


def texts(file: Path) -> Iterator[str]:
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def main() -> None:
    folder, limit = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None
    mode = Mode(sys.argv[3]) if len(sys.argv) > 3 else Mode.FAST
    detector = Detector(DetectorOptions(mode=mode))
    print(f"{'file':<28}{'texts':>7}{'come back':>11}{'stay':>9}{'JSON':>12}")
    with tempfile.TemporaryDirectory() as home, open_database(None, Path(home)) as database:
        vault = Vault(database, bytes(32))
        for file in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
            count = back = stay = json_texts = json_kept = 0
            for text in islice(texts(file), limit):
                shown = cast(
                    "str", Sanitizer(detector, vault, durable=False).hide(f"{file}{count}", [Text(text)]).parts[0]
                )
                again = Sanitizer(detector, vault, durable=False)
                count += 1
                back += again.restore_text(f"{file}{count - 1}", shown).content == text
                stay += again.hide(f"{file}{count - 1}", [Text(shown)]).parts[0] == shown
                if is_json(text):
                    json_texts += 1
                    json_kept += is_json(shown)
            if count:
                kept = f"{json_kept}/{json_texts}"
                print(
                    f"{file.name:<28}{count:>7}{back / count:>11.4f}{stay / count:>9.4f}{kept:>12}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
