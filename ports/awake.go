//go:build linux

package ports

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
)

// wakeLatency is the file in which a process requests how many microseconds a processor may take
// to wake. The kernel applies the strictest request while its file is open
// (Documentation/power/pm_qos_interface.rst).
const wakeLatency = "/dev/cpu_dma_latency"

// Awake keeps the machine's idle processors awake: an idle processor polls for work. Waking a
// sleeping one takes an interrupt and the time to leave its state. With a hypervisor that is 8 to
// 16 µs.
type Awake struct{ request *os.File }

// OpenAwake opens a request. Processors may sleep until Keep(true). It needs root, and a kernel
// with wake-up latency requests.
func OpenAwake() (*Awake, error) {
	f, err := OpenAwakeFile()
	if err != nil {
		return nil, err
	}
	return AwakeBy(f)
}

// OpenAwakeFile opens a request for a process that may not open one (AwakeBy). Until the request
// is written, the processors sleep as before.
func OpenAwakeFile() (*os.File, error) {
	f, err := os.OpenFile(wakeLatency, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("keep processors awake: %w", err)
	}
	return f, nil
}

// AwakeBy is OpenAwake with an open request. It needs no privilege.
func AwakeBy(request *os.File) (*Awake, error) {
	a := &Awake{request}
	return a, a.Keep(false)
}

// Keep keeps idle processors awake, or lets them sleep.
func (a *Awake) Keep(awake bool) error {
	limit := uint32(math.MaxInt32)
	if awake {
		limit = 0
	}
	_, err := a.request.Write(binary.NativeEndian.AppendUint32(nil, limit))
	return err
}

// Close lets the processors sleep, as the end of the process does.
func (a *Awake) Close() error { return a.request.Close() }
