import asyncio, json, sys
from pathlib import Path
import pytest
from mcp.types import ElicitResult
from .server.conftest import in_this_process
from .server.upstream_tools.test_registry import ONE_SPARE, configure
from .server.upstream_tools.test_approvals import User, yes, NO
CASES = [
"# Pay the rent\nawait tools.bank.put(to='US133000000121212121212', amount=100, subject='Rent')\nawait getattr(tools.bank,'pu'+'t')(to='evil', amount=5)",
"for to, amount in [('A',1),('B',2),('C',3),('D',4)]:\n    await tools.bank.put(to=to, amount=amount, subject='Rent')",
"import asyncio\nbills = await tools.bank.bills()\nawait asyncio.gather(*[tools.bank.put(to=b['iban'], amount=b['sum']) for b in bills])\nawait tools.bank.put(to='X', amount=2)",
"for n in range(50):\n    await tools.bank.note(text=f'n {n}')",
"await tools.bank.put('A', 5)\nawait tools.bank.put('A', 5)\nawait getattr(tools.bank,'pu'+'t')(to='A', amount=5)",
]
async def test_it(tmp_path):
    configure(tmp_path, bank={"command": sys.executable, "args": ["/tmp/q43/bank.py", str(tmp_path/"log")]})
    user = User([yes()])
    async with in_this_process(tmp_path, ONE_SPARE, elicitation_callback=user) as caller:
        for code in CASES:
            user.asked.clear(); (tmp_path/"log").unlink(missing_ok=True)
            r = await caller.run(code)
            print("=== CODE", code, "\n--", r["status"], r.get("error"), sep="\n")
            for q in user.asked: print("> "+q.replace("\n","\n> "))
            print((tmp_path/"log").read_text() if (tmp_path/"log").exists() else "")
        print(user.choices[-1])
