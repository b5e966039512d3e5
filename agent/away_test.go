package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/switchd/local"
)

// splitSwitch is a switch that runs by itself at a socket of a test.
type splitSwitch struct {
	socket string
	cancel context.CancelFunc
	ended  chan error
}

// startSwitch starts one without ports, whose entries are table 0, Classifier.
func startSwitch(t *testing.T) *splitSwitch {
	t.Helper()
	dir := t.TempDir()
	s := &splitSwitch{socket: filepath.Join(dir, "switch.sock"), ended: make(chan error, 1)}
	p := &switchd.Process{
		Socket: s.socket, Dir: filepath.Join(dir, "files"), Release: "test", Log: slog.New(slog.DiscardHandler),
		Settings: local.Settings{Workers: 1, Offload: local.OffloadOff},
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(t.Context())
	go func() { s.ended <- p.Run(ctx) }()
	t.Cleanup(func() { s.stop(t) })
	c := door.Dial(s.socket)
	nstest.Until(t, "the switch answers", func() bool { _, err := c.Info(t.Context()); return err == nil })
	prog, err := parse.Program(parse.Sources{
		Flows: parse.Text("flows", "table=0, priority=10,arp actions=NORMAL\ntable=0, priority=5,in_port=1,ip actions=ct(commit,zone=7),output:2\ntable=0, priority=1,in_port=2,udp actions=drop\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	prog.Names.SetTable(0, "Classifier")
	prog.Names.SetPort(1, "left")
	if err := c.Apply(flow.BundleOf(prog)); err != nil {
		t.Fatal(err)
	}
	return s
}

// stop stops the switch, and waits until it has ended.
func (s *splitSwitch) stop(t *testing.T) {
	s.cancel()
	if s.ended == nil {
		return
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.ended = nil
}

// splitPipeline is a pipeline of an agent whose switch is s.
func splitPipeline(t *testing.T, s *splitSwitch) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.NewPipeline(pipeline.Options{Remote: door.Dial(s.socket)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAwaySwitchIsNoAnswer: what an agent answers while its switch is away is the reason,
// and what to do; never an empty dump.
func TestAwaySwitchIsNoAnswer(t *testing.T) {
	s := startSwitch(t)
	p := splitPipeline(t, s)
	a := answer.New(p)
	c := a.Client("test")
	for _, away := range []bool{false, true} {
		if away {
			s.stop(t)
		}
		want := func(what string, err error) {
			t.Helper()
			switch {
			case !away && err != nil:
				t.Errorf("%s: %v", what, err)
			case away && (err == nil || !strings.Contains(err.Error(), "no switch answers at "+s.socket) || !strings.Contains(err.Error(), "starts it again")):
				t.Errorf("%s of a switch that is away: %v", what, err)
			}
		}
		for _, path := range []string{"/flows", "/groups", "/meters", "/ports", "/workers", "/tables", "/pipeline", "/conntrack", "/conntrack/stats", "/cache", "/fdb", "/drops", "/drops/last", "/sums", "/counters", "/metrics"} {
			_, err := c.Get(t.Context(), path, nil)
			want(path, err)
		}
		_, err := c.Get(t.Context(), "/flows", url.Values{"format": {"json"}})
		want("/flows as JSON", err)
		_, err = c.Delete(t.Context(), "/conntrack", nil)
		want("flush", err)
		_, err = c.Post(t.Context(), "/trace", nil, &api.TraceRequest{Flow: "in_port=1,ip"})
		want("trace", err)
		_, err = a.CounterText(t.Context())
		want("counters of the page", err)
	}
	if err := c.FollowDrops(t.Context(), &api.DropQuery{}, func(*api.DroppedPacket) error { return nil }, func(string) {}); err == nil || !strings.Contains(err.Error(), s.socket) {
		t.Errorf("drops --follow: %v", err)
	}
}

// TestStreamsEndWithTheSwitch: the last line of a live trace and of followed drops says why no
// more lines come.
func TestStreamsEndWithTheSwitch(t *testing.T) {
	s := startSwitch(t)
	c, err := answer.Connect(t.Context(), s.socket)
	if err != nil {
		t.Fatal(err)
	}
	armed, ended := make(chan bool, 10), make(chan error, 2)
	go func() {
		ended <- c.TraceLive(t.Context(), &api.LiveTraceRequest{}, func(*api.LiveLine) error { armed <- true; return nil })
	}()
	<-armed
	go func() {
		ended <- c.FollowDrops(t.Context(), &api.DropQuery{}, func(*api.DroppedPacket) error { return nil }, func(string) {})
	}()
	time.Sleep(200 * time.Millisecond) // if the request comes later, it fails at its begin: an error too
	s.stop(t)
	for range 2 {
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "no switch answers at "+s.socket) {
			t.Errorf("ended with %v", err)
		}
	}
}

// TestRefusedByTheSwitch: a question that makes no sense is the caller's mistake, and does
// not count as a failure of the switch.
func TestRefusedByTheSwitch(t *testing.T) {
	p := splitPipeline(t, startSwitch(t))
	failed := p.BeginAsking()
	a := answer.New(p)
	c := a.Client("test")
	if _, err := c.Post(t.Context(), "/trace", nil, &api.TraceRequest{Flow: "in_port=1,ip", Packet: "00"}); err == nil {
		t.Error("a frame of one byte was walked")
	}
	if err := failed(); err != nil {
		t.Errorf("counted as a failure: %v", err)
	}
}

// TestAwaySwitchKeepsWhatIsKnown: loops that run beside the API take nothing over from a
// switch that is away.
func TestAwaySwitchKeepsWhatIsKnown(t *testing.T) {
	s := startSwitch(t)
	var log bytes.Buffer
	a := &Agent{Pipeline: splitPipeline(t, s), log: slog.New(slog.NewTextHandler(&log, nil)), config: &config.Config{}}
	if err := a.switchAnswers(); err != nil {
		t.Error(err)
	}
	a.Drops.Since(0, func(*api.DroppedPacket) bool { return true })
	a.Drops.Ports[1] = map[string]uint64{"a reason": 5}
	s.stop(t)
	a.Drops.Since(0, func(*api.DroppedPacket) bool { return true })
	if a.Drops.Ports[1] == nil {
		t.Error("ports are forgotten")
	}
	var away *door.AwayError
	if err := a.switchAnswers(); !errors.As(err, &away) {
		t.Errorf("condition switch: %v", err)
	}
	if err := a.makeGateway(); !errors.As(err, &away) {
		t.Errorf("the gateway is made without knowing the switch's ports: %v", err)
	}
}

// TestDirectAnswers: a client of a switch answers what one of an agent of flow files does.
func TestDirectAnswers(t *testing.T) {
	s := startSwitch(t)
	c, err := answer.Connect(t.Context(), s.socket)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/flows?names=1": "table=Classifier", "/tables": "Classifier", "/workers": "0", "/pipeline": "Classifier", "/metrics": "antrail_table_entries",
		"/groups": "", "/ports": "", "/conntrack": "", "/conntrack/stats": "", "/cache": "", "/fdb": "", "/drops": "", "/drops/last": "", "/sums": "", "/counters": "Classifier",
	} {
		if got := text(t, c, path); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not have %q", path, got, want)
		}
	}
	b, err := c.Post(t.Context(), "/trace", url.Values{"format": {"json"}}, &api.TraceRequest{Flow: "in_port=1,ip"})
	var a api.TraceAnswer
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil || len(a.Entries) != 1 || a.Entries[0].Priority != 5 {
		t.Errorf("trace: %v\n%s", err, b)
	}
	if b, err = c.Delete(t.Context(), "/conntrack", nil); err != nil || !strings.HasPrefix(string(b), "flushed 0") {
		t.Errorf("flush: %q, %v", b, err)
	}
	for path, want := range map[string]string{"/explain": "no objects", "/services": "no objects", "/check": "antrail agent", "/readyz": "antrail agent"} {
		if _, err := c.Get(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestWaitingAgentSaysSo: an agent that waits for its switch says for what, is alive and not
// ready, and has its listener back when it waits no more.
func TestWaitingAgentSaysSo(t *testing.T) {
	dir := t.TempDir()
	config := &config.Config{Socket: filepath.Join(dir, "agent.sock"), Switch: filepath.Join(dir, "nobody.sock")}
	ln, err := switchd.Listen(config.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a := &Agent{config: config, log: slog.New(slog.DiscardHandler), api: ln, told: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, _, err := a.awaitSwitch(ctx); ended <- err }()
	c := api.NewClient(config.Socket)
	if _, err := c.Get(t.Context(), "/flows", nil); err == nil || !strings.Contains(err.Error(), "the agent waits for its switch: no switch answers at "+config.Switch) {
		t.Errorf("flows: %v", err)
	}
	if got := text(t, c, "/healthz"); !strings.Contains(got, "switch: warning: no switch answers") {
		t.Errorf("healthz: %s", got)
	}
	if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "switch: no switch answers") {
		t.Errorf("readyz: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() {
		if conn, err := net.Dial("unix", config.Socket); err == nil {
			conn.Close()
		}
	}()
	conn, err := ln.Accept()
	if err != nil {
		t.Fatalf("the listener is not given back: %v", err)
	}
	conn.Close()
}

// text is the answer to a question: a path and its parameters.
func text(t *testing.T, c *api.Client, question string) string {
	t.Helper()
	path, params, _ := strings.Cut(question, "?")
	q, err := url.ParseQuery(params)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Get(t.Context(), path, q)
	if err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	return string(b)
}
