//go:build linux

package ports

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
)

// wakeLatency is where a process tells the kernel how many microseconds a processor may
// take to wake. The kernel heeds the strictest as long as the file is open
// (Documentation/power/pm_qos_interface.rst).
const wakeLatency = "/dev/cpu_dma_latency"

// Awake keeps the machine's idle processors from falling asleep: one that has nothing to
// do looks for work until it has some. Waking one that sleeps takes an interrupt and the
// time to leave its state. With a hypervisor it takes 8 to 16 µs.
type Awake struct{ request *os.File }

// OpenAwake lets processors sleep until Keep says otherwise. It takes root, and a
// kernel that has such requests.
func OpenAwake() (*Awake, error) {
	f, err := OpenAwakeFile()
	if err != nil {
		return nil, err
	}
	return AwakeBy(f)
}

// OpenAwakeFile opens a request for a process that may not open one (AwakeBy). Until it
// is written, the processors sleep as before.
func OpenAwakeFile() (*os.File, error) {
	f, err := os.OpenFile(wakeLatency, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("keep processors awake: %w", err)
	}
	return f, nil
}

// AwakeBy is OpenAwake with a request that is open. It takes no privilege.
func AwakeBy(request *os.File) (*Awake, error) {
	a := &Awake{request}
	return a, a.Keep(false)
}

// Keep has idle processors stay awake, or lets them sleep.
func (a *Awake) Keep(awake bool) error {
	limit := uint32(math.MaxInt32)
	if awake {
		limit = 0
	}
	_, err := a.request.Write(binary.NativeEndian.AppendUint32(nil, limit))
	return err
}

// Close lets them sleep, as the end of the process does.
func (a *Awake) Close() error { return a.request.Close() }
