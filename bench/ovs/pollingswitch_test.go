package ovs

import (
	"errors"
	"slices"
	"testing"
)

func TestParseThreads(t *testing.T) {
	const first = "pmd thread numa_id 0 core_id 0:\n  packets received: 10\n  idle cycles: 900 (90.00%)\n  processing cycles: 100 (10.00%)\n" +
		"  avg processing cycles per packet: 10.00 (100/10)\n"
	const second = "pmd thread numa_id 0 core_id 1:\n  packets received: 20\n  miss with success upcall: 4\n  miss with failed upcall: 3\n  idle cycles: 1 (1.00%)\n  processing cycles: 99 (99.00%)\n"
	const rest = "main thread:\n  packets received: 7\n  idle cycles: 1\n  processing cycles: 2\n"
	want := []ThreadStats{{10, 900, 100, 0}, {20, 1, 99, 7}}
	for n, text := range []string{rest, first + rest, first + second + rest} {
		if all, err := parseThreads(text, n); err != nil || !slices.Equal(all, want[:n]) {
			t.Errorf("%d threads: %+v, %v", n, all, err)
		}
		if all, err := parseThreads(text, n+1); err == nil {
			t.Errorf("%d threads, not %d: %+v", n, n+1, all)
		}
	}
	for _, bad := range []string{"", "pmd thread numa_id 0:\n", "pmd thread numa_id 0:\n  packets received: 1\n" + rest} {
		if all, err := parseThreads(bad, 1); err == nil {
			t.Errorf("%q: %+v", bad, all)
		}
	}
	if _, err := parseThreads("pmd thread numa_id 0:\n  packets received: 1\n"+rest, 1); !errors.Is(err, errUnfinished) {
		t.Errorf("packets without cycles: %v, want an account that is not finished", err)
	}
}
