package rig

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// Machine is the machine of a run.
type Machine struct {
	// Processor is its model.
	Processor string `json:"processor"`
	// CPUs is how many processors Go sees.
	CPUs int `json:"cpus"`
	// Kernel is the kernel's name and release.
	Kernel string `json:"kernel"`
	// Go is the Go version.
	Go string `json:"go"`
	// Load is the load average of the last minute before the run.
	Load float64 `json:"load"`
	// Foreign is the part of the processors that other programs used before the run, from 0 to 1.
	Foreign float64 `json:"foreign"`
	// Driver is the kernel's driver of links between contenders. It is empty without root.
	Driver string `json:"driver"`
	// Offloads are the offloads of such a link that are on, in the words of ethtool -k.
	Offloads []string `json:"offloads"`
}

// inspectMachine describes this machine. It takes half a second.
func inspectMachine() Machine {
	m := Machine{Processor: processor(), CPUs: runtime.NumCPU(), Kernel: kernelRelease(), Go: runtime.Version(), Load: loadAverage(), Foreign: sched.ForeignLoad()}
	m.Driver, m.Offloads, _ = inspectLink() // without root there is no link to look at
	return m
}

// String is processor, kernel and Go version in one line.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d CPUs, %s, %s", m.Processor, m.CPUs, m.Kernel, m.Go)
}

// facts is what String leaves out, with the load after the run.
func (m Machine) facts(loadAfter, foreignAfter float64) string {
	text := fmt.Sprintf("Load average %.2f before the run, %.2f after it; other programs took %.0f %% and %.0f %% of the processors.",
		m.Load, loadAfter, 100*m.Foreign, 100*foreignAfter)
	if m.Driver != "" {
		text += fmt.Sprintf(" Links are of driver %s; offloads: %s.", m.Driver, strings.Join(m.Offloads, ", "))
	}
	return text
}

// MachineLine is this machine's Machine.String.
func MachineLine() string {
	return Machine{Processor: processor(), CPUs: runtime.NumCPU(), Kernel: kernelRelease(), Go: runtime.Version()}.String()
}

// processor is the model of the first processor.
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

// kernelRelease is the kernel's name and release.
func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "Linux"
	}
	return "Linux " + unix.ByteSliceToString(name.Release[:])
}

// loadAverage is the load average of the last minute; 0 if the kernel does not tell it.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// offloads are the offloads that matter between pods.
var offloads = []string{
	"tx-checksum-ip-generic", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation",
	"tx-udp_tnl-segmentation", "tx-udp-segmentation", "rx-gro", "tx-scatter-gather",
}

// inspectLink makes a veth pair like those of the profiles. It returns the driver, and which of offloads
// are on.
func inspectLink() (driver string, on []string, err error) {
	ns, err := testbed.NewNamespace()
	if err != nil {
		return "", nil, err
	}
	defer ns.Close()
	err = testbed.Within(ns)(func() error {
		if err := testbed.AddVethPair("a", "b"); err != nil {
			return err
		}
		driver, on, err = readLink("a")
		return err
	})
	return driver, on, err
}

// readLink reads a link's driver, and which of offloads are on.
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
