package offload

import (
	"runtime"
	"time"

	"github.com/cilium/ebpf"
)

// Waiting until no packet is between the two programs that has found what is withdrawn.
//
//  1. The filter makes its processor's count of runs odd before it reads anything. So a
//     run that an odd count does not show has read nothing yet.
//  2. The ingress program makes the count even, because it is the last to read. For a
//     packet that takes no offload entry the filter itself does so.
//  3. Both sides have a barrier between writing theirs and reading the other's. So after
//     an even count, or another one than a moment ago, the processor's next run reads
//     what was written before.
//  4. A count stays odd when a foreign program took the packet in between, or when the
//     processor of a virtual machine is not run. So after settleTime the kernel is asked
//     for a grace period of RCU, because both programs run under RCU.
//
// The counts take microseconds, the grace period milliseconds.

// settleTime is how long the counts are watched.
const settleTime = 2 * time.Millisecond

// Settle returns once no packet is under way by what was withdrawn before.
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

// graceSpec is an array of maps. The kernel returns from an update of one only when every
// program that could still see the old value has ended.
func graceSpec() ebpf.MapSpec {
	return ebpf.MapSpec{Name: "antrail_grace", Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: 1, InnerMap: innerSpec()}
}

func innerSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "antrail_inner", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
}

// waitForGrace waits for the programs that run now. It puts two maps in turn, both made at
// the start, because making one takes CAP_BPF, which the process may have given up. If the
// kernel refuses, the wait is a time longer than any program's run.
func (k *Kernel) waitForGrace() {
	if err := k.grace.Put(uint32(0), k.inner[k.waits.Add(1)%2]); err != nil {
		time.Sleep(100 * time.Millisecond)
	}
}
