//go:build linux && !portable

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet/packettest"
)

// bareSwitch is a switch without an agent: this program in a namespace of its own.
type bareSwitch struct {
	*nstest.Namespace
	socket string
	door   *door.Client
	cmd    *exec.Cmd
}

// startBare starts one, without entries.
func startBare(t *testing.T) *bareSwitch {
	t.Helper()
	dir := t.TempDir()
	s := &bareSwitch{Namespace: nstest.New(t), socket: filepath.Join(dir, "switch.sock")}
	s.door = door.Dial(s.socket)
	settings := filepath.Join(dir, "settings.json")
	if err := os.WriteFile(settings, []byte(`{"workers": 1, "offload": "off"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s.cmd = s.antrail("switch", "--settings", settings)
	s.cmd.Stderr = &log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the switch said:\n%s", log.String())
		}
	})
	nstest.Until(t, "the switch answers", func() bool { _, err := s.door.Info(t.Context()); return err == nil })
	return s
}

// kill ends the switch as a crash does.
func (s *bareSwitch) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// antrail is a command of this program that asks the switch, or is it.
func (s *bareSwitch) antrail(args ...string) *exec.Cmd {
	c := s.Command(os.Args[0], append(args, "--socket", s.socket)...)
	c.Env = append(os.Environ(), asBinary+"=1")
	return c
}

// load replaces the entries by those of a program.
func (s *bareSwitch) load(t *testing.T, p *flow.Program) {
	t.Helper()
	if err := s.door.Apply(flow.BundleOf(p)); err != nil {
		t.Fatal(err)
	}
}

// seedProgram is examples/seed.
func seedProgram(t *testing.T) *flow.Program {
	t.Helper()
	src := parse.Sources{Names: flow.NewNames()}
	for name, to := range map[string]*parse.Source{"flows": &src.Flows, "groups": &src.Groups, "meters": &src.Meters, "ports": &src.Ports} {
		f, err := parse.File("examples/seed/seed." + name)
		if err != nil {
			t.Fatal(err)
		}
		*to = f
	}
	p, err := parse.Program(src)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// printed is what a command prints, and its exit code.
func printed(command string, more ...string) (string, int) {
	var b bytes.Buffer
	code := run(append(strings.Fields(command), more...), &b, &b)
	return b.String(), code
}

// TestBareSwitchAnswersAsFiles: what a command prints of a switch that has the entries of
// flow files is what it prints of these files.
func TestBareSwitchAnswersAsFiles(t *testing.T) {
	s := startBare(t)
	s.load(t, seedProgram(t))
	for _, command := range []string{
		"dump-flows --names --no-stats", "dump-flows SpoofGuard --no-stats", "dump-groups", "dump-groups --names", "dump-drops", "dump-conntrack", "fdb-show",
		"trace in_port=2,ip,nw_dst=10.10.0.26", "trace in_port=2,arp -o json", "pipeline", "pipeline -o dot", "pipeline -o json",
		"get services", "explain Pod/default/web-a", "dump-flows --explain --no-stats", "why default/a default/b:80",
	} {
		want, code := printed(command + " " + seedFiles)
		if command == "why default/a default/b:80" { // of files only with objects
			want, code = "", exitUsage
		}
		got, gotCode := printed(command, "--socket", s.socket)
		if strings.HasPrefix(command, "why ") && strings.Contains(got, "without objects an end is ADDRESS") {
			got = ""
		}
		if got != want || gotCode != code {
			t.Errorf("%s: exit codes %d and %d\n%s\nof files\n%s", command, gotCode, code, got, want)
		}
	}
	for _, s := range []struct{ command, socket, want string }{
		{"dump-workers", s.socket, "WORKER"}, {"dump-cache", s.socket, "entries"}, {"dump-tables", s.socket, "Classifier"}, {"dump-meters", s.socket, "meter=256"},
		{"conntrack stats", s.socket, "ct_entries"}, {"drops --sums", s.socket, "RECEIVED"}, {"drops", s.socket, ""}, {"top --count 1 --every 10ms --view tables", s.socket, "Classifier"},
		{"flush-conntrack", s.socket, "flushed 0 connections"}, {"dump-ports", s.socket, ""},
	} {
		if got, code := printed(s.command, "--socket", s.socket); code != 0 || !strings.Contains(got, s.want) {
			t.Errorf("%s: exit code %d, want %q in\n%s", s.command, code, s.want, got)
		}
	}
	if got, code := printed("check --live", "--socket", s.socket); code != exitFailed || !strings.Contains(got, "only an agent (antrail agent) answers /check") {
		t.Errorf("check --live: exit code %d\n%s", code, got)
	}
}

// TestEmptySwitchAnswers: a switch to which nobody has sent entries answers all the same.
func TestEmptySwitchAnswers(t *testing.T) {
	s := startBare(t)
	for _, command := range []string{"dump-flows", "dump-tables", "dump-ports", "dump-workers", "dump-cache", "pipeline", "drops", "drops --sums", "conntrack stats"} {
		if got, code := printed(command, "--socket", s.socket); code != 0 {
			t.Errorf("%s: exit code %d\n%s", command, code, got)
		}
	}
	if got, code := printed("trace in_port=1,ip", "--socket", s.socket); code != exitFailed || !strings.Contains(got, "no pipeline is loaded") {
		t.Errorf("trace: exit code %d\n%s", code, got)
	}
}

// TestSwitchBesideAgent: if no agent answers, but the switch that it would use does, the
// hint says how to ask the switch.
func TestSwitchBesideAgent(t *testing.T) {
	s := startBare(t)
	ofLab := filepath.Join(filepath.Dir(s.socket), "node-a.switch.sock")
	if err := os.Symlink(s.socket, ofLab); err != nil {
		t.Fatal(err)
	}
	for name, beside := range map[string]string{"agent.sock": s.socket, "node-a.sock": ofLab} {
		socket := filepath.Join(filepath.Dir(s.socket), name)
		if got, code := printed("dump-flows", "--socket", socket); code != exitFailed || !strings.Contains(got, "no agent answers at "+socket) || !strings.Contains(got, "--socket "+beside+" asks the switch") {
			t.Errorf("exit code %d\n%s", code, got)
		}
	}
	s.kill()
	if got, _ := printed("dump-flows", "--socket", filepath.Join(filepath.Dir(s.socket), "agent.sock")); strings.Contains(got, "asks the switch") {
		t.Errorf("of a switch that was killed:\n%s", got)
	}
	if got, code := printed("dump-flows", "--socket", s.socket); code != exitFailed || got == "" {
		t.Errorf("dump-flows at a switch that was killed: exit code %d\n%s", code, got)
	}
}

// lines starts a command, and gives the lines that it prints. The test's end kills it.
func lines(t *testing.T, c *exec.Cmd) (out, notes *bufio.Reader) {
	t.Helper()
	o, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	time.AfterFunc(time.Minute, func() { c.Process.Kill() }) // nobody waits for ever
	return bufio.NewReader(o), bufio.NewReader(e)
}

// TestBareSwitchStreams: live traces, captures and drops --follow tell of packets of a
// switch without an agent while they pass, and fail when the switch is killed.
func TestBareSwitchStreams(t *testing.T) {
	s := startBare(t)
	p, err := parse.Program(parse.Sources{Flows: parse.Text("flows", "table=0, priority=5,in_port=1,udp actions=drop\n")})
	if err != nil {
		t.Fatal(err)
	}
	p.Names.SetTable(0, "Classifier")
	p.Names.SetPort(1, "left")
	s.load(t, p)
	peer := nstest.New(t)
	nstest.AddVeth(t, s.Namespace, "left0", peer, "eth0")
	if err := s.door.OpenPort(&door.PortSpec{No: 1, Name: "left", Driver: config.DriverAFPacket, Link: "left0"}); err != nil {
		t.Fatal(err)
	}
	wire := nstest.OpenWire(t, peer, "eth0")
	send := func() {
		t.Helper()
		if err := wire.Send(packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: 53})); err != nil {
			t.Fatal(err)
		}
	}
	followed, said := lines(t, s.antrail("drops", "--follow"))
	if head, err := followed.ReadString('\n'); err != nil || !strings.Contains(head, "REASON") {
		rest, _ := io.ReadAll(said)
		t.Fatalf("drops --follow: %q, %v\n%s", head, err, rest)
	}
	for _, args := range [][]string{{"trace", "--live", "--filter", "udp port 53", "--count", "1"}, {"capture", "--port", "left", "--count", "1", "-w", "-"}} {
		out, notes := lines(t, s.antrail(args...))
		if text, err := notes.ReadString('\n'); err != nil || !strings.HasPrefix(text, "watching ") {
			t.Fatalf("%v: %q, %v", args, text, err)
		}
		send()
		text, err := io.ReadAll(out)
		if err != nil || !bytes.Contains(text, []byte("Classifier")) {
			t.Errorf("%v: %v\n%s", args, err, text)
		}
	}
	for range 2 {
		if line, err := followed.ReadString('\n'); err != nil || !strings.Contains(line, "Classifier") || !strings.Contains(line, "left") {
			t.Errorf("drops --follow: %q, %v", line, err)
		}
	}
	s.kill()
	rest, err := io.ReadAll(said)
	if err != nil || !bytes.Contains(rest, []byte("no switch answers at "+s.socket)) {
		t.Errorf("drops --follow of a switch that was killed: %v\n%s", err, rest)
	}
}

// TestConnectedControllerAlone: while an agent drives the switch, a person cannot flush its
// connections directly. The error names the controller.
func TestConnectedControllerAlone(t *testing.T) {
	s := startBare(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan bool)
	go s.door.Control(ctx, "antrail agent", false, func() { close(begun) }, func(*door.Event) {})
	<-begun
	if got, code := printed("flush-conntrack", "--socket", s.socket); code != exitFailed || !strings.Contains(got, `controller "antrail agent" is connected`) {
		t.Errorf("exit code %d\n%s", code, got)
	}
	if got, code := printed("dump-flows", "--socket", s.socket); code != 0 || slices.Contains(strings.Fields(got), "controller") {
		t.Errorf("exit code %d\n%s", code, got)
	}
}
