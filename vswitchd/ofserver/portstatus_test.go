package ofserver

import (
	"encoding/hex"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// portNotices are the lines of n port statuses.
func (w *watcher) portNotices(n int) (all []string) {
	w.t.Helper()
	for told := 0; told < n || len(all) == 0 || !strings.Contains(all[len(all)-1], "speed:"); {
		select {
		case l := <-w.lines:
			if strings.Contains(l, "PORT_STATUS") {
				told++
			}
			if told > 0 && !strings.Contains(l, "FLOW_REMOVED") && !strings.Contains(l, "cookie:0x99") {
				all = append(all, differs.ReplaceAllString(l, "…"))
			}
		case <-time.After(20 * time.Second):
			w.t.Fatalf("%s: %d statuses came of %d: %q", w.dir, told, n, all)
		}
	}
	return all
}

// TestPortStatusAsOpenVSwitch: ports come, change and go. Controllers get the same messages as from
// Open vSwitch.
func TestPortStatusAsOpenVSwitch(t *testing.T) {
	for _, version := range []string{"10", "13", "14", "15"} {
		t.Run("OpenFlow"+version, func(t *testing.T) {
			ovs := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1}, ovstest.Port{Name: "p2", Number: 2})
			r := newRig(t)
			// Open vSwitch tells of a port before it is live, and then of that.
			told := func(dir string, added int, add, remove func()) []string {
				w := watch(t, dir, version)
				for _, what := range []string{"no-receive", "receive", "no-forward"} {
					w.modPort(version, "p1", what)
				}
				all := w.portNotices(3)
				add()
				come := w.portNotices(added)[:4]
				come[2] = strings.Replace(come[2], "state:      0", "state:      LIVE", added-1)
				all = append(all, come...)
				remove()
				return append(all, w.portNotices(1)...)
			}
			got := told(r.dir, 1, func() {
				if err := r.sw.AddPort(7, memory.New("p7", memory.Options{})); err != nil {
					t.Fatal(err)
				}
				r.server.WatchPorts()
			}, func() {
				if err := r.sw.RemovePort(7); err != nil {
					t.Fatal(err)
				}
				r.server.WatchPorts()
			})
			added := 2
			if version == "10" {
				added = 1 // it has no such state
			}
			want := told(ovs.Dir, added, func() { ovs.AddPorts(ovstest.Port{Name: "p7", Number: 7}) }, func() {
				if text, err := ovs.Vsctl("del-port", "p7"); err != nil {
					t.Fatal(text, err)
				}
			})
			if !slices.Equal(got, want) {
				t.Errorf("antrail\n%s\nOpen vSwitch\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// modPort changes a setting of a port.
func (w *watcher) modPort(version, port, what string) {
	w.t.Helper()
	if text, ok := ofctl(w.t, w.dir, "-OOpenFlow"+version, "mod-port", bridge, port, what); !ok {
		w.t.Fatalf("mod-port %s %s: %s", port, what, text)
	}
}

// TestPortSettingsAct: the settings of a port by a controller affect packets.
func TestPortSettingsAct(t *testing.T) {
	r := newRig(t)
	w := &watcher{t: t, dir: r.dir}
	frame := flow.Compose(&flow.Key{})
	copy(frame, "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01")
	// out are the ports that a frame from p1 leaves by, with the actions.
	out := func(actions string) (all []uint32) {
		t.Helper()
		w.do("10", "add-flow", "priority=9,actions="+actions)
		if err := r.ports[1].Send(slices.Clone(frame)); err != nil {
			t.Fatal(err)
		}
		r.sw.Poll()
		for _, no := range []uint32{2, 3, flow.PortLocal} {
			if len(r.ports[no].CollectAll()) > 0 {
				all = append(all, no)
			}
		}
		return all
	}
	for _, c := range []struct {
		port, setting, back, actions string
		want                         []uint32
	}{
		{"p2", "up", "up", "FLOOD", []uint32{2, 3, flow.PortLocal}},
		{"p2", "no-flood", "flood", "FLOOD", []uint32{3, flow.PortLocal}},
		{"p2", "no-flood", "flood", "NORMAL", []uint32{3, flow.PortLocal}},
		{"p2", "no-flood", "flood", "ALL", []uint32{2, 3, flow.PortLocal}},
		{"p2", "no-flood", "flood", "output:2", []uint32{2}},
		{"p2", "no-forward", "forward", "ALL", []uint32{3, flow.PortLocal}},
		{"p2", "no-forward", "forward", "output:2,output:3", []uint32{3}},
		{"p2", "down", "up", "output:2,output:3", []uint32{3}},
		{"p1", "no-receive", "receive", "ALL", nil},
		{"p1", "down", "up", "ALL", nil},
		{"p1", "no-forward", "forward", "ALL", []uint32{2, 3, flow.PortLocal}},
	} {
		w.modPort("10", c.port, c.setting)
		for range 3 { // the walk, and what the caches keep of it
			if got := out(c.actions); !slices.Equal(got, c.want) {
				t.Errorf("%s of %s, %s: leaves by %d, want %d", c.setting, c.port, c.actions, got, c.want)
			}
		}
		w.modPort("10", c.port, c.back)
	}
	w.modPort("10", "p2", "no-flood")
	if err := r.sw.ConfigurePort(2, telemetry.PortConfig{}); err != nil { // as another switch has it
		t.Fatal(err)
	}
	if err := r.server.RestorePorts(); err != nil {
		t.Fatal(err)
	}
	if got := out("FLOOD"); !slices.Equal(got, []uint32{3, flow.PortLocal}) {
		t.Errorf("settings restored: leaves by %d", got)
	}
	drops := r.sw.Drops()
	if drops[telemetry.DropNoReceive] != 6 || drops[telemetry.DropNoForward] != 0 {
		t.Errorf("%d dropped where no-receive is set, and %d where no-forward is", drops[telemetry.DropNoReceive], drops[telemetry.DropNoForward])
	}
}

// rawPeer is a connection whose messages the test writes.
func rawPeer(t *testing.T, dir string, v openflow.Version) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", filepath.Join(dir, bridge+".mgmt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := openflow.Read(c, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte{byte(v), 0, 0, 8, 0, 0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask writes a message, and returns the next that comes but for the peer's echo requests.
func ask(t *testing.T, c net.Conn, message string) string {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(message, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	for {
		b, err := openflow.Read(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b[1] != 2 {
			return hex.EncodeToString(b)
		}
	}
}

// TestAsyncConfigAsOpenVSwitch: the asynchronous configuration, its default and its changes, are as in
// Open vSwitch. ovs-ofctl has no command for that, so the test writes the messages.
func TestAsyncConfigAsOpenVSwitch(t *testing.T) {
	ovs := ovstest.Start(t)
	r := newRig(t)
	for v, messages := range map[openflow.Version][]string{
		openflow.V13: {
			"041a0008 00000002",
			"041c0020 00000003 00000001 00000002 00000003 00000004 00000005 00000006 041a0008 00000004",
			"04040028 00000007 00002320 0000001b 0000 0008 00000001 0001 0008 00000003 0005 0008 00000000 041a0008 00000008",
			"041c0018 00000003 00000001 00000002 00000003 00000004",
		},
		openflow.V15: {
			"061a0008 00000002",
			"061c0018 00000003 0000 0008 00000001 0003 0008 00000002 061a0008 00000004",
			"061c0010 00000003 0063 0008 00000001",
			"061c000c 00000003 0000 0008",
		},
	} {
		ours, theirs := rawPeer(t, r.dir, v), rawPeer(t, ovs.Dir, v)
		for _, m := range messages {
			if got, want := ask(t, ours, m), ask(t, theirs, m); got != want {
				t.Errorf("%s: %s is answered by\n%s, on Open vSwitch by\n%s", v, m, got, want)
			}
		}
	}
}
