package appctl

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/switchd/local"
	"github.com/antrail/antrail/vswitchd/unixctl"
)

// rig is a switch of antrail behind a door, its control socket, and Open vSwitch beside it. Both
// have the bridge br0 with the ports p1 to p3, and the same entries.
type rig struct {
	t     testing.TB
	dir   string
	sw    *local.Switch
	ports map[uint32]*memory.Port
	ovs   *ovstest.Switch
	names *flow.Names // that install gives the switch
}

func newRig(t testing.TB) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "ap") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &rig{t: t, dir: dir, ports: map[uint32]*memory.Port{}, names: flow.NewNames()}
	r.ovs = ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1}, ovstest.Port{Name: "p2", Number: 2}, ovstest.Port{Name: "p3", Number: 3})
	if r.sw, err = local.Open(local.Config{Conntrack: conntrack.Config{Timeouts: proto.DefaultTimeouts()}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.sw.Close() })
	for no, name := range map[uint32]string{1: "p1", 2: "p2", 3: "p3", flow.PortLocal: ovstest.Bridge} {
		r.ports[no] = memory.New(name, memory.Options{})
		if err := r.sw.AddPort(no, r.ports[no]); err != nil {
			t.Fatal(err)
		}
	}
	r.serve()
	return r
}

// serve opens the door of the switch, and its control socket.
func (r *rig) serve() {
	r.t.Helper()
	ln := r.listen("door")
	h := &http.Server{Handler: door.NewServer(r.sw, nil, func() int64 { return 0 }, "test").Handler()}
	go h.Serve(ln)
	r.t.Cleanup(func() { h.Close() })
	s := &Switch{Switch: door.Dial(filepath.Join(r.dir, "door")), Bridge: func() string { return ovstest.Bridge }}
	commands := unixctl.New(slog.New(slog.DiscardHandler), "ovs-vswitchd (Open vSwitch) 3.1.0")
	commands.Register(s.Commands()...)
	ctl := r.listen("vs.ctl")
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- commands.Serve(ctx, ctl) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	})
}

func (r *rig) listen(name string) net.Listener {
	r.t.Helper()
	ln, err := net.Listen("unix", filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return ln
}

// install gives both switches entries and groups of testdata.
func (r *rig) install(flows, groups string) {
	r.t.Helper()
	read := func(name string) parse.Source {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			r.t.Fatal(err)
		}
		return parse.Text(name, string(b))
	}
	p, err := parse.Program(parse.Sources{Flows: read(flows), Groups: read(groups)})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.sw.Apply(&flow.Bundle{Names: r.names, Add: p.Entries, Groups: p.Groups}); err != nil {
		r.t.Fatal(err)
	}
	var text, groupText strings.Builder
	for _, e := range p.Entries {
		text.WriteString(e.Text(flow.Format{}) + "\n")
	}
	for _, g := range p.Groups { // ofproto/trace does not follow the datapath's hash
		groupText.WriteString(strings.Replace(g.Text(nil), "type=select,", "type=select,selection_method=hash,", 1) + "\n")
	}
	r.ofctl("add-groups", groupText.String())
	r.ofctl("add-flows", text.String())
}

// ofctl gives lines to ovs-ofctl on Open vSwitch.
func (r *rig) ofctl(command, lines string) {
	r.t.Helper()
	name := filepath.Join(r.dir, "lines")
	if err := os.WriteFile(name, []byte(lines), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.ovs.Ofctl(command, name); err != nil {
		r.t.Fatal(err)
	}
}

// appctl runs ovs-appctl on a control socket, and returns its output.
func (r *rig) appctl(socket string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "ovs-appctl", append([]string{"--timeout=20", "-t", socket}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // a refusal is a text, too
	return strings.ReplaceAll(out.String(), socket, "SOCKET")
}

// send gives both switches a packet in flow syntax, by a port.
func (r *rig) send(port uint32, text string) {
	r.t.Helper()
	m, err := parse.Match(text, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	frame := flow.Compose(&m.Value)
	if err := r.ports[port].Send(frame); err != nil {
		r.t.Fatal(err)
	}
	r.sw.Poll()
	if said := r.appctl(filepath.Join(r.ovs.Dir, "vs.ctl"), "netdev-dummy/receive", fmt.Sprintf("p%d", port), hex.EncodeToString(frame)); said != "" {
		r.t.Fatal(said)
	}
}

// both is the output of both switches.
func (r *rig) both(args ...string) (ours, theirs string) {
	r.t.Helper()
	return r.appctl(filepath.Join(r.dir, "vs.ctl"), args...), r.appctl(filepath.Join(r.ovs.Dir, "vs.ctl"), args...)
}
