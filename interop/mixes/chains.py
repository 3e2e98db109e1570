"""The chains: which programs stand where.

A component is a list of words; a nested chain is one component of the outer one. `C` and `P` are
Greenroom's conductor and pass-through proxy; `c3`, `p3`, `c5`, `p5` are released ones. `p3` and
`p5` are built for the version that the client speaks, `r3` and `r5` for both.
"""

import shlex


class Programs:
    def __init__(self, ours, ours_proxy, peers3, peers5, agent, version):
        words = {
            "C": [ours], "P": [ours_proxy], "A": agent,
            "c3": [f"{peers3}/conductor"], "c5": [f"{peers5}/conductor"],
            "p3": [f"{peers3}/proxy", f"v{version}"], "p5": [f"{peers5}/proxy", f"v{version}"],
            "r3": [f"{peers3}/proxy", "both"], "r5": [f"{peers5}/proxy", "both"],
        }
        self.words = words

    def command(self, chain):
        """`chain` is a name, or `(conductor, mode, *components)`."""
        if isinstance(chain, str):
            return self.words[chain]
        conductor, mode, *components = chain
        return [*self.words[conductor], mode, *[shlex.join(self.command(part)) for part in components]]


def name(chain):
    if isinstance(chain, str):
        return chain
    conductor, mode, *components = chain
    inside = " ".join(name(part) for part in components)
    return f"{conductor}[{inside}]" if mode == "agent" else f"{conductor}({inside})"


# What released programs do among themselves: shown, not judged.
RELEASED = [
    ("c3", "agent", "p3", "A"),
    ("c5", "agent", "p5", "A"),
    ("c3", "agent", "p5", "A"),
    ("c5", "agent", "p3", "A"),
    ("c3", "agent", ("c3", "proxy", "p3"), "A"),
    ("c5", "agent", ("c5", "proxy", "p5"), "A"),
    ("c3", "agent", "p3", ("c3", "agent", "p3", "A")),
    ("c5", "agent", "p5", ("c5", "agent", "p5", "A")),
]

# Everything must work here.
OURS = [
    # Proxies of others in our conductor: both generations, all four mixes, routers, ours between.
    ("C", "agent", "p3", "A"),
    ("C", "agent", "p5", "A"),
    ("C", "agent", "p3", "p3", "A"),
    ("C", "agent", "p3", "p5", "A"),
    ("C", "agent", "p5", "p3", "A"),
    ("C", "agent", "p5", "p5", "A"),
    ("C", "agent", "P", "p3", "P", "p5", "P", "A"),
    ("C", "agent", "r3", "A"),
    ("C", "agent", "r5", "A"),
    ("C", "agent", "r5", "P", "r3", "A"),
    # Their conductors as proxies of ours.
    ("C", "agent", ("c3", "proxy"), "A"),
    ("C", "agent", ("c5", "proxy"), "A"),
    ("C", "agent", ("c3", "proxy", "p3"), "A"),
    ("C", "agent", ("c5", "proxy", "p5"), "A"),
    ("C", "agent", ("c3", "proxy", "p3"), ("c5", "proxy", "p5"), "A"),
    ("C", "agent", ("c5", "proxy", "p5"), ("c3", "proxy", "p3"), "A"),
    ("C", "agent", ("C", "proxy", "p3", "p5"), ("C", "proxy", "p5", "p3"), "A"),
    # Their conductors as our agent.
    ("C", "agent", "p5", ("c3", "agent", "p3", "A")),
    ("C", "agent", "p3", ("c5", "agent", "p5", "A")),
    ("C", "agent", "P", ("c3", "agent", "A")),
    ("C", "agent", "P", ("c5", "agent", "A")),
    # Ours inside theirs: as a proxy, also with components that they cannot speak to, and as agent.
    ("c3", "agent", "P", "A"),
    ("c5", "agent", "P", "A"),
    ("c3", "agent", "p3", "P", "A"),
    ("c5", "agent", "P", "p5", "A"),
    ("c3", "agent", ("C", "proxy"), "A"),
    ("c5", "agent", ("C", "proxy"), "A"),
    ("c3", "agent", ("C", "proxy", "p5"), "A"),
    ("c5", "agent", ("C", "proxy", "p3"), "A"),
    ("c3", "agent", "p3", ("C", "proxy", "p3", "p5"), "A"),
    ("c5", "agent", "p5", ("C", "proxy", "p5", "p3"), "A"),
    ("c3", "agent", "p3", ("C", "agent", "p5", "A")),
    ("c5", "agent", "p5", ("C", "agent", "p3", "A")),
    # Through three conductors: ours in theirs in ours.
    ("C", "agent", ("c3", "proxy", ("C", "proxy", "p5", "p3")), "A"),
    ("C", "agent", ("c5", "proxy", ("C", "proxy", "p3", "p5")), "A"),
]


def limits(chain):
    """Checks that a released program in this chain cannot pass, whoever is around it."""
    found = {}

    def nested(part, outermost):
        if isinstance(part, str):
            return
        conductor, mode, *components = part
        if conductor == "c3" and mode == "proxy":
            found["tried_again"] = "c3 as a proxy takes one initialize"
        if conductor != "C" and outermost:
            found["death_is_told"] = "a released conductor may end before it has answered"
        for component in components:
            nested(component, False)
    nested(chain, True)
    return found
