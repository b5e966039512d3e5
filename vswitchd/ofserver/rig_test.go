package ofserver

import (
	"bytes"
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/switchd/local"
)

// bridge is the name of the bridge, here and on Open vSwitch.
const bridge = "br0"

// rig is a switch with ports p1 to p3 and br0 in memory, behind a door on a unix socket, and a
// server that drives it through that.
type rig struct {
	t      testing.TB
	dir    string
	sw     *local.Switch
	client *door.Client
	server *Server
	ports  map[uint32]*memory.Port
}

func newRig(t testing.TB) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "of") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &rig{t: t, dir: dir, ports: map[uint32]*memory.Port{}}
	c := local.Config{Conntrack: conntrack.Config{Timeouts: proto.DefaultTimeouts()}}
	c.PacketIn = func(pi *telemetry.PacketIn) { r.server.PacketIn(pi) }
	c.FlowRemoved = func(e *telemetry.FlowRemoved) { r.server.FlowRemoved(e) }
	if r.sw, err = local.Open(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.sw.Close() })
	for no, name := range map[uint32]string{1: "p1", 2: "p2", 3: "p3", flow.PortLocal: bridge} {
		r.ports[no] = memory.New(name, memory.Options{})
		if err := r.sw.AddPort(no, r.ports[no]); err != nil {
			t.Fatal(err)
		}
	}
	r.serveDoor()
	if r.server, err = New(Config{Switch: r.client, Bridge: bridge, DatapathID: 0x1234, Release: "test"}); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(dir, bridge+".mgmt"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.server.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

// serveDoor opens the door of the switch.
func (r *rig) serveDoor() {
	r.t.Helper()
	socket := filepath.Join(r.dir, "switch.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		r.t.Fatal(err)
	}
	h := &http.Server{Handler: door.NewServer(r.sw, nil, func() int64 { return 0 }, "test").Handler()}
	go h.Serve(ln)
	r.t.Cleanup(func() { h.Close() })
	r.client = door.Dial(socket)
}

// ofctl runs ovs-ofctl on a directory of sockets, and returns its output.
func ofctl(t testing.TB, dir string, args ...string) (text string, ok bool) {
	t.Helper()
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("Open vSwitch is not installed: no ovs-ofctl")
	}
	cmd := exec.CommandContext(t.Context(), "ovs-ofctl", append([]string{"--timeout=20"}, args...)...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err == nil
}

// ofpPrint is the text that ovs-ofctl prints for a message.
func ofpPrint(t testing.TB, message []byte) string {
	t.Helper()
	text, ok := ofctl(t, "/", "ofp-print", hex.EncodeToString(message))
	if !ok {
		t.Fatalf("ofp-print: %s", text)
	}
	return text
}
