"""What layout.py calls broken: run by scripts/ci/15-boundary.sh."""
import layout

TABLE = "struct tn_table 16\n  0 size: uint32_t\n  8 run: void (*)(void*)"
LEAF = "struct tn_leaf 16\n  0 data: void*\n  8 size: size_t"
OLD = ["constant TN_TWO 2", TABLE, LEAF, "type tn_status int32_t"]


def changed(old, new):
    return layout.broken(OLD, [new if block == old else block for block in OLD])


def main():
    same = [
        (OLD, "nothing changed"),
        ([*OLD, "constant TN_THREE 3", "struct tn_other 8\n  0 size: uint32_t"], "a constant and a struct more"),
        ([b.replace(TABLE, TABLE.replace("16", "24") + "\n  16 more: void*") for b in OLD], "a table grown at its end"),
    ]
    for new, what in same:
        assert layout.broken(OLD, new) == [], what
    for old, new, said in [
        (TABLE, TABLE.replace("  8 run", "  12 run"), "struct tn_table: '8 run: void (*)(void*)' is now '12 run: void (*)(void*)'"),
        (TABLE, TABLE.replace("(void*)", "(int)"), "struct tn_table: '8 run: void (*)(void*)' is now '8 run: void (*)(int)'"),
        (TABLE, TABLE.replace("run", "walk"), "struct tn_table: '8 run: void (*)(void*)' is now '8 walk: void (*)(void*)'"),
        (LEAF, LEAF.replace("16", "24") + "\n  16 more: void*", "struct tn_leaf: 'struct tn_leaf 16' is now 'struct tn_leaf 24'"),
        ("constant TN_TWO 2", "constant TN_TWO 3", "constant TN_TWO: 'constant TN_TWO 2' is now 'constant TN_TWO 3'"),
        ("constant TN_TWO 2", "constant TN_DUO 2", "constant TN_TWO is gone"),
        ("type tn_status int32_t", "type tn_status int64_t", "type tn_status: 'type tn_status int32_t' is now 'type tn_status int64_t'"),
    ]:
        found = changed(old, new)
        assert found == [said], f"expected {said!r}, found {found!r}"
    draft = ['constant TN_GRAPH_ID "tenon.graph.draft/1"']
    assert layout.frozen({"core.h": OLD, "graph.h": draft}) == {"core.h"}
    kept = layout.frozen({"core.h": OLD, "graph.h": [draft[0].replace(".draft", "")], "memory.h": ['constant TN_MEMORY_ID "tenon.memory.draft/1"']})
    assert kept == {"core.h", "graph.h", "types.h"}, kept


main()
