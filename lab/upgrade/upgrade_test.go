package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/antrailtest"
	"github.com/antrail/antrail/internal/reaptest"
	"github.com/antrail/antrail/lab"
)

// antrail is the binary that the labs of these tests run.
var antrail string

func TestMain(m *testing.M) { os.Exit(antrailtest.Main(m, &antrail)) }

// up makes a lab of two Nodes whose pods' ports have this driver. It is removed when the
// test ends.
func up(t *testing.T, driver string) *lab.Lab {
	t.Helper()
	return upWith(t, lab.Options{Driver: driver})
}

// upWith makes a lab of two Nodes, which is removed when the test ends.
func upWith(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a lab needs root")
	}
	o.Binary, o.StateDir = antrail, reaptest.LabDir(t)
	l, err := lab.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log, err := os.ReadFile(l.Log(node)); err == nil && t.Failed() {
			t.Logf("log of %s:\n%s", node, log)
		}
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestNoConnectionIsLost runs the measurement with less traffic. It asserts that no
// connection is lost and no packet comes twice, but no times. On a busy machine, queues may
// drop packets; in a hand-over they would have to be full of this little traffic.
func TestNoConnectionIsLost(t *testing.T) {
	for _, driver := range []string{config.DriverAuto, config.DriverAFXDP} {
		if testing.Short() && driver == config.DriverAFXDP {
			continue
		}
		t.Run(driver, func(t *testing.T) { wantNoneLost(t, driver) })
	}
}

func wantNoneLost(t *testing.T, driver string) {
	r, err := Run(t.Context(), up(t, driver), Options{
		Connections: 60, Rate: 1000, Heartbeat: 50 * time.Millisecond, Window: 500 * time.Millisecond, Binary: antrail, Kills: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	r.Write(&table)
	t.Logf("%s", table.String())
	names := []string{"nothing", "agent: kill -9, 3 times", "agent: planned", "switch: kill -9", "switch: planned"}
	if len(r.Events) != len(names) || r.Lost() != 0 {
		t.Fatalf("%d events, want %v; %d connections were lost", len(r.Events), names, r.Lost())
	}
	for i, e := range r.Events {
		if e.Name != names[i] || len(e.Paths) != len(datagramPaths) {
			t.Fatalf("event %d is %q with %d ways", i, e.Name, len(e.Paths))
		}
		if (e.Stopped > 0) != (e.Name == "switch: planned") || e.Slowest <= 0 {
			t.Errorf("%s: stopped for %v ms, slowest answer %v ms", e.Name, e.Stopped, e.Slowest)
		}
		for _, p := range e.Paths {
			if p.Sent == 0 || p.Lost >= p.Sent || p.Copies != 0 {
				t.Errorf("%s, %s: %d packets sent, %d lost, %d twice", e.Name, p.By, p.Sent, p.Lost, p.Copies)
			}
			if e.Name != "switch: kill -9" && p.Lost > 0 {
				t.Errorf("%s, %s: %d packets of %d lost", e.Name, p.By, p.Lost, p.Sent)
			}
			if (p.First > 0) != (e.Name != "nothing") {
				t.Errorf("%s, %s: the first packet came after %v ms", e.Name, p.By, p.First)
			}
		}
	}
}

// TestWindow: the result of a window with given packet times.
func TestWindow(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) int64 { return start.Add(time.Duration(ms) * time.Millisecond).UnixNano() }
	d := &datagrams{path: datagramPaths[0], sent: 6, from: 1, copies: 3, copiesBefore: 1, began: start}
	d.sentAt = []int64{at(-10), at(0), at(10), at(40), at(50), at(60)}
	d.came = []int64{at(-9), at(1), 0, 0, at(71), at(72)}
	d.end()
	got := d.seen(start.Add(45 * time.Millisecond))
	want := Path{From: "db-a", To: "client-a", By: "on the Node", Sent: 5, Lost: 2, Copies: 2, Gap: 70, Pause: 30, Wait: 21, First: 26}
	if got != want {
		t.Errorf("the window is %+v, want %+v", got, want)
	}
}

// TestReport: the table has a line for each path, and JSON has the same numbers.
func TestReport(t *testing.T) {
	r := &Report{Node: node, Connections: 7, Rate: 8, Events: []Event{
		{Name: "nothing", Paths: []Path{{By: "on the Node", Sent: 9}}},
		{Name: "kill -9", Ready: 12.5, Stopped: 4.5, Lost: 3, Silent: 1, Slowest: 230, Why: "3: reset", Paths: []Path{{By: "on the Node", Sent: 10, Lost: 4, Gap: 300.25, Wait: 7, First: 20}}},
	}}
	if r.Lost() != 3 {
		t.Errorf("%d lost, want 3", r.Lost())
	}
	var table, text bytes.Buffer
	if err := r.Write(&table); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(table.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"node-a: 7 TCP connections, 8 UDP packets a second", "kill -9 3 230.0 12.5 4.5 3: reset", "nothing 0 0.0 - -",
		"nothing on the Node 9 0 0 0.0 0.0 0.0 -", "kill -9 on the Node 10 4 0 300.2 0.0 7.0 20.0",
	} {
		if !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	if err := r.JSON(&text); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || back.Lost() != 3 || back.Events[1].Paths[0].Gap != 300.25 {
		t.Errorf("%s: %v", text.String(), err)
	}
}

// TestLostOrSlow: a connection that was reset is lost. One whose other end does not answer
// is silent. Each has the kernel's state.
func TestLostOrSlow(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dial := func() (one *stream, far *net.TCPConn) {
		near, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { near.Close(); c.Close() })
		return &stream{Conn: near}, c.(*net.TCPConn)
	}
	s := &streams{}
	for range 2 {
		one, far := dial()
		far.SetLinger(0)
		far.Close()
		one.runHeartbeats(t.Context(), time.Millisecond)
		s.all = append(s.all, one)
	}
	mute, _ := dial()
	if _, err := mute.Write([]byte("12345678")); err != nil {
		t.Fatal(err)
	}
	answers, far := dial()
	go io.Copy(far, far)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for answers.answered.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	since := time.Now()
	answers.runHeartbeats(ctx, time.Millisecond)
	s.all = append(s.all, mute, answers)

	var e Event
	e.connections(s, 0, s.silent(since))
	if e.Lost != 3 || e.Silent != 1 || e.Slowest <= 0 {
		t.Errorf("%+v", e)
	}
	for _, want := range []string{"2: ", "connection reset by peer", "1: " + mute.LocalAddr().String(), "no answer: TCP state 1"} {
		if !strings.Contains(e.Why, want) {
			t.Errorf("why: %q, want %q", e.Why, want)
		}
	}
	s.beginWindow()
	if d := s.slowest(); d != 0 {
		t.Errorf("a window begins with a heartbeat of %v", d)
	}
	e.connections(s, 2, nil)
	if e.Lost != 0 || e.Why != "" {
		t.Errorf("lost before, and told again: %+v", e)
	}
}

// TestSourcePorts: no two paths share a port, for any first port.
func TestSourcePorts(t *testing.T) {
	ways := map[int]int{}
	for _, first := range []int{0, 7003, 19999} {
		for i := range 2000 {
			port, way := sourcePort(first, i), i%len(streamPaths)
			if had, ok := ways[port]; ok && had != way || port < firstSource || port >= firstSource+sourcePorts {
				t.Fatalf("port %d is of ways %d and %d", port, had, way)
			}
			ways[port] = way
		}
	}
	if len(ways) < 4000 {
		t.Errorf("%d ports for 6000 connections", len(ways))
	}
	tried := map[int]bool{}
	for try := range mostTries {
		port := sourcePort(0, 3+try*further(999))
		if port%len(streamPaths) != sourcePort(0, 3)%len(streamPaths) {
			t.Errorf("try %d is of another way", try)
		}
		tried[port] = true
	}
	if len(tried) != mostTries {
		t.Errorf("%d ports in %d tries", len(tried), mostTries)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Connections: -1}, {Rate: -1}, {Heartbeat: -1}, {Window: -1}} {
		if _, err := Run(t.Context(), nil, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
