package offload

import (
	"runtime"
	"time"

	"github.com/cilium/ebpf"
)

// Waiting until no packet is between the two programs with a withdrawn entry:
//
//  1. The filter makes its processor's count of runs odd before it reads anything. So if the
//     count is not odd, no run has read anything yet.
//  2. The ingress program makes the count even, because it is the last to read. For a packet
//     without an offload entry, the filter itself does that.
//  3. Each side has a barrier between writing its word and reading the other's. So if a count is
//     even, or differs from a moment ago, the processor's next run reads everything that was
//     written before.
//  4. A count stays odd if another program took the packet in between, or if the processor of a
//     virtual machine does not run. So after settleTime, Settle asks the kernel for a grace
//     period of RCU, because both programs run under RCU.
//
// The counts take microseconds, the grace period milliseconds.

// settleTime is how long Settle watches the counts.
const settleTime = 2 * time.Millisecond

// Settle returns once no packet is under way by an entry that was withdrawn before.
func (k *Kernel) Settle() {
	deadline := time.Now().Add(settleTime)
	for i := range k.controlAt[1:] {
		run := &k.controlAt[1+i].run
		for was := run.Load(); was&1 != 0 && run.Load() == was; runtime.Gosched() {
			if time.Now().After(deadline) {
				k.waitForGrace()
				return
			}
		}
	}
}

// graceSpec is an array of maps. An update of it returns only when every program that could still
// see the old value has ended.
func graceSpec() ebpf.MapSpec {
	return ebpf.MapSpec{Name: "antrail_grace", Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 1, InnerMap: innerSpec()}
}

func innerSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "antrail_inner", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
}

// waitForGrace waits for the programs that run now. It puts two maps in turn. Both were made at
// the start, because making one takes CAP_BPF, which the process may have dropped. If the kernel
// refuses, waitForGrace sleeps longer than any program runs.
func (k *Kernel) waitForGrace() {
	if err := k.grace.Put(uint32(0), k.inner[k.waits.Add(1)%2]); err != nil {
		time.Sleep(100 * time.Millisecond)
	}
}
