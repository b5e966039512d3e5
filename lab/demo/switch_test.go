package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/tables"
)

// TestSwitchWithoutPrivilege: switches have none, on ports of each driver, also those that
// agents start again when they were killed. The checks hold after kills of a switch and of
// its agent.
func TestSwitchWithoutPrivilege(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]lab.Options{
		"auto":   {Driver: config.DriverAuto, Offload: config.OffloadAuto},
		"afxdp":  {Driver: config.DriverAFXDP, Offload: config.OffloadOff},
		"uplink": {Driver: config.DriverAFXDP, TunnelDriver: config.DriverAFXDP, Offload: config.OffloadOff},
		"gre":    {Driver: config.DriverAuto, Tunnel: "gre", Offload: config.OffloadOff},
	} {
		if testing.Short() && name != "auto" && name != "uplink" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testWithoutPrivilege(t, o)
		})
	}
}

func testWithoutPrivilege(t *testing.T, o lab.Options) {
	l := upWith(t, o)
	w, err := newWorld(l)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, n := range l.Topology.Nodes {
		wantConfined(t, switchPID(t, l, n.Name))
	}
	wantDrivers(t, l, &o)
	const node = "node-a"
	killSwitch(t, l, node)
	pid := switchPID(t, l, node)
	wantConfined(t, pid)
	before, err := openDescriptors(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.KillAgent(node), l.RestartAgent(t.Context(), node, antrail)); err != nil {
		t.Fatal(err)
	}
	if after, err := openDescriptors(pid); err != nil || after > before+4 { // connections of agents come and go
		t.Errorf("%d descriptors of the switch before, %d with another agent: %v", before, after, err)
	}
	wantDrivers(t, l, &o)
	runChecks(t, w, allChecks(t, w))
	for _, n := range l.Topology.Nodes {
		if off := door.Dial(l.SwitchSocket(n.Name)).OffloadOff(); (off == "") != (o.Offload == config.OffloadAuto && afpacket.CanForward() == nil) {
			t.Errorf("%s: offload is off: %q", n.Name, off)
		}
	}
}

// wantDrivers checks the drivers of the switches' ports, except taps.
func wantDrivers(t *testing.T, l *lab.Lab, o *lab.Options) {
	t.Helper()
	pods, tunnel := "afpacket", "underlay"
	if o.Driver == config.DriverAFXDP {
		pods = "afxdp"
	}
	if o.TunnelDriver == config.DriverAFXDP {
		tunnel = "uplink"
	}
	for _, n := range l.Topology.Nodes {
		for _, p := range door.Dial(l.SwitchSocket(n.Name)).Ports() {
			want := pods
			switch {
			case p.Driver == config.DriverTap:
				continue
			case p.No == tables.V115.TunnelNo():
				want = tunnel
			}
			if p.Driver != want || !p.Up {
				t.Errorf("%s: port %d %q: driver %s, up %v, want %s", n.Name, p.No, p.Name, p.Driver, p.Up, want)
			}
		}
	}
}

// switchPID is the process of a Node's switch.
func switchPID(t *testing.T, l *lab.Lab, node string) int {
	t.Helper()
	pid, err := l.SwitchPID(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// killSwitch kills a Node's switch, and returns when its agent has another.
func killSwitch(t *testing.T, l *lab.Lab, node string) {
	t.Helper()
	if err := errors.Join(l.KillSwitch(t.Context(), node), l.WaitAgent(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
}

// TestOffloadAfterKilledSwitch: the kernel forwards again by programs that the next
// switch was given.
func TestOffloadAfterKilledSwitch(t *testing.T) {
	w := offloadWorld(t)
	killSwitch(t, w.lab, "node-a")
	testOffload(t, w)
}

func openDescriptors(pid int) (int, error) {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(all), err
}

// wantConfined checks what the kernel says of every thread of a process.
func wantConfined(t *testing.T, pid int) {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, thread := range threads {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, thread.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(b)), " ")
		for _, want := range []string{
			"CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000 CapAmb: 0000000000000000",
			"NoNewPrivs: 1 Seccomp: 2", "Uid: 64081 64081 64081 64081", "Gid: 64081 64081 64081 64081",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("thread %s lacks %q: %s", thread.Name(), want, text)
			}
		}
	}
}

// TestSwitchEndsWithItsLauncher: `antrail switch --confined` waits for a process without
// privilege, which ends when it is killed.
func TestSwitchEndsWithItsLauncher(t *testing.T) {
	node := nstest.New(t)
	socket := filepath.Join(t.TempDir(), "switch.sock")
	launcher := node.Command(antrail, "switch", "--confined", "--socket", socket)
	launcher.Stderr = os.Stderr
	if err := launcher.Start(); err != nil {
		t.Fatal(err)
	}
	defer launcher.Process.Kill()
	var info *door.SwitchInfo
	waitUntil(t, "the switch to answer", func() (ok bool) {
		var err error
		info, err = door.Dial(socket).Info(t.Context())
		return err == nil
	})
	if !info.Confined || info.PID == launcher.Process.Pid {
		t.Errorf("%+v, of launcher %d", info, launcher.Process.Pid)
	}
	wantConfined(t, info.PID)
	launcher.Process.Kill()
	launcher.Wait()
	waitUntil(t, "the switch to end", func() bool {
		open, err := openDescriptors(info.PID)
		return err != nil || open == 0 // of a process that nobody has waited for yet
	})
}
