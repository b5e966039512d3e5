package demo

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/ports/afpacket"
	"golang.org/x/sys/unix"
)

// TestDemoConfined is the demo with switches that have no privilege, on ports of each
// driver: before and after a switch is killed and started again, and its agent, too.
func TestDemoConfined(t *testing.T) {
	for name, o := range map[string]lab.Options{
		"offload off":  {Driver: agent.DriverAuto, Offload: agent.OffloadOff},
		"offload auto": {Driver: agent.DriverAuto, Offload: agent.OffloadAuto},
		"afxdp":        {Driver: agent.DriverAFXDP, Offload: agent.OffloadOff},
		"uplink":       {Driver: agent.DriverAFXDP, TunnelDriver: agent.DriverAFXDP, Offload: agent.OffloadOff},
		"gre":          {Driver: agent.DriverAuto, Tunnel: "gre", Offload: agent.OffloadOff},
	} {
		t.Run(name, func(t *testing.T) { demoConfined(t, o) })
	}
}

func demoConfined(t *testing.T, o lab.Options) {
	o.Split, o.Confined = true, true
	l := upWith(t, o)
	t.Cleanup(func() { showSwitchLogs(t, l) })
	w, err := newWorld(l)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, n := range l.Topology.Nodes {
		wantConfined(t, l.SwitchPID(n.Name))
	}
	wantDrivers(t, l, &o)
	runDemo(t, w)
	const node = "node-a"
	if err := l.KillSwitch(node); err != nil {
		t.Fatal(err)
	}
	if err := l.StartSwitch(t.Context(), node, antrail); err != nil {
		t.Fatal(err)
	}
	if err := l.WaitAgent(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	wantConfined(t, l.SwitchPID(node))
	before, err := openDescriptors(l.SwitchPID(node))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.KillAgent(node), l.RestartAgent(t.Context(), node, antrail)); err != nil {
		t.Fatal(err)
	}
	if after, err := openDescriptors(l.SwitchPID(node)); err != nil || after > before+4 { // connections of agents come and go
		t.Errorf("%d descriptors of the switch before, %d with another agent: %v", before, after, err)
	}
	wantDrivers(t, l, &o)
	runChecks(t, w, allChecks(t, w))
	for _, n := range l.Topology.Nodes {
		if off := door.Dial(l.SwitchSocket(n.Name)).OffloadOff(); (off == "") != (o.Offload == agent.OffloadAuto && afpacket.CanForward() == nil) {
			t.Errorf("%s: offload is off: %q", n.Name, off)
		}
	}
}

// TestOffloadConfined: the kernel forwards by the programs that the launcher has loaded,
// that the agent has attached, and whose maps a process without privilege writes; also
// after the switch was killed.
func TestOffloadConfined(t *testing.T) {
	w, _ := offloadLabWith(t, lab.Options{Split: true, Confined: true})
	testOffload(t, w)
	const node = "node-a"
	if err := errors.Join(w.lab.KillSwitch(node), w.lab.StartSwitch(t.Context(), node, antrail), w.lab.WaitAgent(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
	testOffload(t, w)
}

// wantDrivers checks what ports the switches have, besides taps.
func wantDrivers(t *testing.T, l *lab.Lab, o *lab.Options) {
	t.Helper()
	pods, tunnel := "afpacket", "underlay"
	if o.Driver == agent.DriverAFXDP {
		pods = "afxdp"
	}
	if o.TunnelDriver == agent.DriverAFXDP {
		tunnel = "uplink"
	}
	for _, n := range l.Topology.Nodes {
		for _, p := range door.Dial(l.SwitchSocket(n.Name)).Ports() {
			want := pods
			switch {
			case p.Driver == agent.DriverTap:
				continue
			case p.No == agent.DefaultTunnelPort:
				want = tunnel
			}
			if p.Driver != want || !p.Up {
				t.Errorf("%s: port %d %q: driver %s, up %v, want %s", n.Name, p.No, p.Name, p.Driver, p.Up, want)
			}
		}
	}
}

func openDescriptors(pid int) (int, error) {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(all), err
}

func showSwitchLogs(t *testing.T, l *lab.Lab) {
	for _, n := range l.Topology.Nodes {
		if log, err := os.ReadFile(l.SwitchLog(n.Name)); err == nil && t.Failed() {
			t.Logf("log of the switch of %s:\n%s", n.Name, log)
		}
	}
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

// TestSwitchEndsWithItsLauncher: a controller reads that it has to give ports, and the
// switch ends when its launcher is killed. A lab has none in the agent's process.
func TestSwitchEndsWithItsLauncher(t *testing.T) {
	l := upWith(t, lab.Options{Nodes: 1, Split: true, Confined: true, Driver: agent.DriverAuto})
	info, err := door.Dial(l.SwitchSocket("node-a")).Info(t.Context())
	if err != nil || !info.Confined || info.PID != l.SwitchPID("node-a") {
		t.Errorf("%+v, %v", info, err)
	}
	launcher := l.State.Switches[0].Process.PID
	if launcher == info.PID {
		t.Fatal("the switch is its own launcher")
	}
	if err := unix.Kill(launcher, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the switch to end", func() bool {
		open, err := openDescriptors(info.PID)
		return err != nil || open == 0 // of a process that nobody has waited for yet
	})
	if err := errors.Join(l.KillSwitch("node-a"), l.StartSwitch(t.Context(), "node-a", antrail), l.WaitAgent(t.Context(), "node-a")); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Up(t.Context(), lab.Options{Confined: true}); err == nil || !strings.Contains(err.Error(), "confined") {
		t.Errorf("a confined switch that is the agent's own: %v", err)
	}
}
