package offload

import (
	"errors"
	"testing"
	"time"

	"github.com/antrail/antrail/packet/packettest"
	"github.com/cilium/ebpf"
)

// TestBetweenThePrograms: from the filter's decision until ingress has sent the packet, the
// processor's count is odd. It has another value for each packet, even if the previous packet
// never came to ingress. Ingress sends only the filter's last packet, once, and only at its
// interface of entry.
func TestBetweenThePrograms(t *testing.T) {
	k, trial := open(t)
	frame, other := packettest.UDP4(plain), packettest.TCP4(plain)
	put(t, k, 0, frame)
	back, err := stayOnProcessor()
	if err != nil {
		t.Fatal(err)
	}
	defer back()
	counts := map[uint32]bool{}
	for _, step := range []struct {
		what    string
		program *ebpf.Program
		link    uint32
		frame   []byte
		verdict int32
		odd     bool
	}{
		{"taken", trial.filter, link, frame, 0, true},
		{"taken, and the one before is gone", trial.filter, link, frame, 0, true},
		{"sent", trial.ingress, link, frame, tcRedirect, false},
		{"sent again", trial.ingress, link, frame, tcxDrop, false},
		{"left to the socket", trial.filter, link, other, keepAll, false},
		{"taken", trial.filter, link, frame, 0, true},
		{"left to the socket, after one that is gone", trial.filter, link, other, keepAll, false},
		{"what was left", trial.ingress, link, other, tcxDrop, false},
		{"taken", trial.filter, link, frame, 0, true},
		{"of another interface", trial.ingress, link + 1, frame, tcxDrop, false},
	} {
		verdict, _, err := run(step.program, step.link, step.frame)
		if err != nil {
			t.Fatal(err)
		}
		var count uint32 // of the one processor that has any
		for i := range k.controlAt[1:] {
			count += k.controlAt[1+i].run.Load()
		}
		if int32(verdict) != step.verdict || count&1 != 0 != step.odd || step.odd && counts[count] {
			t.Errorf("%s: verdict %d, want %d; the count is %d, odd %v; it was one of %v", step.what, int32(verdict), step.verdict, count, step.odd, counts)
		}
		counts[count] = true
	}
	if n := k.Dropped(); n != 1 {
		t.Errorf("%d packets were lost, want 1", n)
	}
}

// TestSettleWaits: whichever processor is between the programs, Settle watches it for as
// long as it may, and then has the kernel wait; else it has not.
func TestSettleWaits(t *testing.T) {
	k, _ := open(t)
	for i := range k.controlAt[1:] {
		before := graceOf(t, k)
		if k.Settle(); graceOf(t, k) != before {
			t.Error("the kernel waited for nobody")
		}
		k.controlAt[1+i].run.Store(5)
		start := time.Now()
		if k.Settle(); time.Since(start) < settleTime || graceOf(t, k) == before {
			t.Errorf("processor %d was not waited for", i)
		}
		k.controlAt[1+i].run.Store(6)
	}
}

// graceOf is the map by which the kernel waited last; 0 when it has not.
func graceOf(t *testing.T, k *Kernel) (id ebpf.MapID) {
	if err := k.grace.Lookup(uint32(0), &id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Fatal(err)
	}
	return id
}
