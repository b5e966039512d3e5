package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Machine is what figures were taken on.
type Machine struct {
	Processor string `json:"processor"`
	CPUs      int    `json:"cpus"`
	Kernel    string `json:"kernel"`
	Go        string `json:"go"`
	// Load is the load average of the last minute before the run: other work
	// disturbs every figure.
	Load float64 `json:"load"`
	// Foreign is the part of the processors, 0 to 1, that other programs took for
	// half a second then.
	Foreign float64 `json:"foreign"`
	// Driver is the kernel's of the links between contenders, and Offloads are
	// what of Ethernet and TCP work such a link leaves undone, as ethtool -k
	// calls it; both are empty without root.
	Driver   string   `json:"driver"`
	Offloads []string `json:"offloads"`
}

// inspect looks at this machine.
func inspect() Machine {
	m := Machine{Processor: processor(), CPUs: runtime.NumCPU(), Kernel: kernelRelease(), Go: runtime.Version(), Load: loadAverage(), Foreign: foreignLoad()}
	m.Driver, m.Offloads, _ = inspectLink() // without root there is no link to look at
	return m
}

// String is the machine in a line.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d CPUs, %s, %s", m.Processor, m.CPUs, m.Kernel, m.Go)
}

// facts is what String leaves out.
func (m Machine) facts(loadAfter, foreignAfter float64) string {
	text := fmt.Sprintf("Load average %.2f before the run, %.2f after it; other programs took %.0f %% and %.0f %% of the processors.",
		m.Load, loadAfter, 100*m.Foreign, 100*foreignAfter)
	if m.Driver != "" {
		text += fmt.Sprintf(" Links are of driver %s; offloads: %s.", m.Driver, strings.Join(m.Offloads, ", "))
	}
	return text
}

// machine is this machine in a line.
func machine() string {
	return Machine{Processor: processor(), CPUs: runtime.NumCPU(), Kernel: kernelRelease(), Go: runtime.Version()}.String()
}

// processor is the name that the kernel gives for the first processor.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "Linux"
	}
	return "Linux " + unix.ByteSliceToString(name.Release[:])
}

// loadAverage is that of the last minute, 0 when the kernel does not tell.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// offloads are those that matter between pods.
var offloads = []string{
	"tx-checksum-ip-generic", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation",
	"tx-udp_tnl-segmentation", "tx-udp-segmentation", "rx-gro", "tx-scatter-gather",
}

// inspectLink makes a veth pair as the profiles use them, and reads its driver
// and which of offloads are on.
func inspectLink() (driver string, on []string, err error) {
	ns, err := newNamespace()
	if err != nil {
		return "", nil, err
	}
	defer ns.Close()
	err = within(ns)(func() error {
		if err := addPair("a", "b"); err != nil {
			return err
		}
		driver, on, err = readLink("a")
		return err
	})
	return driver, on, err
}

func readLink(name string) (driver string, on []string, err error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return "", nil, err
	}
	defer e.Close()
	driver, err = e.DriverName(name)
	features, err2 := e.Features(name)
	for _, o := range offloads {
		if features[o] {
			on = append(on, o)
		}
	}
	return driver, slices.Clip(on), errors.Join(err, err2)
}

// inOwnNamespace runs f on a thread in a namespace of its own, which goes away
// with it.
func inOwnNamespace(f func(netns.NsHandle) error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends, and the namespace with it
		ns, err := netns.New()
		if err == nil {
			err = f(ns)
			ns.Close()
		}
		done <- err
	}()
	return <-done
}
