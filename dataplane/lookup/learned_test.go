package lookup

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/antrail/antrail/flow"
)

// TestLearnedWhileRead has two workers look up entries that stay, while others
// are learned, learned again and removed: those that stay are always met, and in
// the end there is what was neither removed nor replaced.
func TestLearnedWhileRead(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const staying, coming = 500, 3000
	tb, _ := sticky(t, 0)
	stay, come := stickiness(t, 0, staying), stickiness(t, staying, coming)
	for _, e := range stay {
		tb.Live.Learned.Add(e, 0)
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for i := range uint64(2) {
		readers.Go(func() {
			r, s, k := rand.New(rand.NewPCG(seed, i)), Scratch{}, new(flow.Key)
			for {
				select {
				case <-done:
					return
				default:
				}
				e := stay[r.IntN(staying)]
				*k = e.Match.Value()
				if got := s.Find(tb, k); got != e {
					t.Errorf("a packet met %v, want %v", describe(got), describe(e))
					return
				}
			}
		})
	}
	for i, e := range come {
		tb.Live.Learned.Add(e, 0)
		if i%500 == 499 {
			gone := map[*Entry]bool{}
			for _, e := range come[i-499 : i-99] {
				gone[e] = true
			}
			if n := tb.Live.Learned.RemoveIf(func(e *Entry) bool { return gone[e] }); len(n) != len(gone) {
				t.Errorf("%d entries were removed, want %d", len(n), len(gone))
			}
		}
	}
	close(done)
	readers.Wait()
	left := staying + coming/5
	if n := tb.Live.Learned.Count(); n != left || len(tb.Live.Learned.List()) != left || tb.Live.Learned.cookies[7] != left {
		t.Errorf("%d entries, %d in the dump, %d of the cookie, want %d", n, len(tb.Live.Learned.List()), tb.Live.Learned.cookies[7], left)
	}
	var s Scratch
	for i, e := range come {
		want := e
		if i%500 < 400 {
			want = nil
		}
		k := e.Match.Value()
		if got := s.Find(tb, &k); got != want {
			t.Fatalf("client %d: %v, want %v", i, describe(got), describe(want))
		}
	}
}

// TestLearnAgain: learning a present entry restarts its timeouts and replaces nothing. With
// another action it replaces the entry.
func TestLearnAgain(t *testing.T) {
	tb, _ := sticky(t, 0)
	l := &tb.Live.Learned
	e, same := stickiness(t, 1, 1)[0], stickiness(t, 1, 1)[0]
	if l.Refresh(same.Entry, 5) {
		t.Error("an entry was refreshed that is not there")
	}
	if !l.Add(e, 0) {
		t.Error("the first entry was not called the first")
	}
	if !l.Refresh(same.Entry, 5) || e.InstalledAt.Load() != 5 || e.Used.Load() != 5 {
		t.Errorf("installed at %d, used at %d, want 5", e.InstalledAt.Load(), e.Used.Load())
	}
	other := *same.Entry
	other.Actions = same.Actions[:1]
	if l.Refresh(&other, 9) {
		t.Error("an entry with other actions was refreshed")
	}
	e.Packets.Store(3)
	l.Add(NewEntry(&other, nil, nil, 0, 9), 1) // in its place, so within the limit
	if all := l.List(); len(all) != 1 || all[0].Entry != &other || all[0].Packets.Load() != 3 {
		t.Errorf("%d entries", len(all))
	}
}
