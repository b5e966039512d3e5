package ofserver

import (
	"bufio"
	"encoding/hex"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/ovstest"
)

// watcher is an ovs-ofctl monitor on a directory of sockets.
type watcher struct {
	t     *testing.T
	dir   string
	lines chan string
}

// watch runs ovs-ofctl monitor, and returns when it has a message about a probe's removal.
func watch(t *testing.T, dir, version string, wants ...string) *watcher {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ovs-ofctl", append([]string{"-OOpenFlow" + version, "monitor", bridge, "65535"}, wants...)...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &watcher{t, dir, make(chan string, 1000)}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			w.lines <- s.Text()
		}
		cmd.Wait()
		close(w.lines)
	}()
	for told := false; !told; {
		w.do(version, "add-flow", "cookie=0x99,table=9,send_flow_rem,actions=drop")
		w.do(version, "del-flows", "table=9")
		select {
		case l := <-w.lines:
			told = strings.Contains(l, "FLOW_REMOVED")
		case <-time.After(100 * time.Millisecond):
		}
	}
	return w
}

func (w *watcher) do(version, command, arg string) {
	w.t.Helper()
	args := []string{"-OOpenFlow" + version, command, bridge}
	if arg != "" {
		args = append(args, arg)
	}
	if text, ok := ofctl(w.t, w.dir, args...); !ok {
		w.t.Fatalf("%s %s: %s", command, arg, text)
	}
}

// notices are n messages about packets or removed entries, but for those of probes. tick is
// called while they have not come.
func (w *watcher) notices(n int, tick func()) (all []string) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); len(all) < n; {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: %d notices came of %d: %q", w.dir, len(all), n, all)
		}
		select {
		case l := <-w.lines:
			if (strings.Contains(l, "reason=") || strings.Contains(l, "PACKET_IN")) && !strings.Contains(l, "cookie:0x99") {
				all = append(all, noticeDiffers.ReplaceAllString(l, "…"))
			}
		case <-time.After(50 * time.Millisecond):
			tick()
		}
	}
	slices.Sort(all)
	return all
}

// noticeDiffers are the permitted differences of messages: numbers and times.
var noticeDiffers = regexp.MustCompile(`xid=0x[0-9a-f]+|duration[=:]?[0-9.]+s?`)

// TestRemovedAsOpenVSwitch removes entries by deletions, with a group, and by both timeouts. An
// entry that another one replaces is not removed. Controllers get the same messages as from Open vSwitch.
func TestRemovedAsOpenVSwitch(t *testing.T) {
	for version, n := range map[string]int{"10": 2, "13": 3, "14": 3, "15": 3} { // before deletions
		t.Run("OpenFlow"+version, func(t *testing.T) {
			ovs := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1}, ovstest.Port{Name: "p2", Number: 2})
			r := newRig(t)
			told := func(dir string, tick func()) []string {
				w := watch(t, dir, version)
				for _, e := range []string{
					"cookie=0x1,priority=7,tcp,nw_dst=10.0.0.0/8,tp_dst=80,idle_timeout=60,hard_timeout=90,send_flow_rem,actions=output:1",
					"cookie=0x2,priority=9,ip,in_port=1,send_flow_rem,actions=output:2",
					"cookie=0x3,priority=9,ip,in_port=2,actions=output:1",
					"cookie=0x4,priority=3,arp,idle_timeout=1,send_flow_rem,actions=drop",
					"cookie=0x5,priority=4,arp,hard_timeout=1,send_flow_rem,actions=drop",
					"cookie=0x6,table=2,udp,send_flow_rem,actions=drop",
				} {
					w.do(version, "add-flow", e)
				}
				if version != "10" {
					w.do(version, "add-group", "group_id=1,type=all,bucket=output:1")
					w.do(version, "add-meter", "meter=1,kbps,band=type=drop,rate=10")
					w.do(version, "add-flow", "cookie=0x7,priority=1,send_flow_rem,actions=group:1")
					w.do(version, "add-flow", "cookie=0x8,priority=2,ip,send_flow_rem,actions=meter:1,output:1")
					w.do(version, "del-groups", "group_id=1")
				}
				all := w.notices(n, tick)
				w.do(version, "del-flows", "tcp")
				w.do(version, "del-flows", "in_port=1,ip")
				w.do(version, "add-flow", "table=2,udp,actions=output:1") // replaces another, which does not count as removed
				w.do(version, "add-flow", "cookie=0x6,table=2,udp,send_flow_rem,actions=output:1")
				w.do(version, "del-flows", "")
				return append(all, w.notices(n+1, tick)...)
			}
			got, want := told(r.dir, func() { r.sw.Expire() }), told(ovs.Dir, func() {})
			if !slices.Equal(got, want) {
				t.Errorf("antrail\n%s\nOpen vSwitch\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestInvalidTTLAsOpenVSwitch: a controller that asks for them gets packets whose TTL ends at a
// dec_ttl, as from Open vSwitch. Another controller gets only other packets.
func TestInvalidTTLAsOpenVSwitch(t *testing.T) {
	ovs := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1}, ovstest.Port{Name: "p2", Number: 2})
	r := newRig(t)
	r.sw.TellTTL(true)
	send := func(text string) {
		m, err := parse.Match(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		frame := flow.Compose(&m.Value)
		if err := r.ports[1].Send(frame); err != nil {
			t.Fatal(err)
		}
		r.sw.Poll()
		if text, err := ovs.Appctl("netdev-dummy/receive", "p1", hex.EncodeToString(frame)); err != nil {
			t.Fatal(text, err)
		}
	}
	for _, dir := range []string{r.dir, ovs.Dir} {
		w := &watcher{t: t, dir: dir}
		w.do("10", "add-flow", "priority=5,ip,actions=dec_ttl,output:2")
		w.do("10", "add-flow", "priority=4,arp,actions=controller")
	}
	asks, other := watch(t, r.dir, "10", "invalid_ttl"), watch(t, r.dir, "10")
	theirs := watch(t, ovs.Dir, "10", "invalid_ttl")
	send("udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=1,udp_src=1000,udp_dst=53")
	send("arp,arp_op=1,arp_spa=10.0.0.1,arp_tpa=10.0.0.2")
	got, want := asks.notices(2, func() {}), theirs.notices(2, func() {})
	if !slices.Equal(got, want) {
		t.Errorf("antrail\n%s\nOpen vSwitch\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if one := other.notices(1, func() {}); !strings.Contains(one[0], "via action") {
		t.Errorf("who has not asked is told of %q", one)
	}
	if n := r.sw.Drops()[telemetry.DropTTL]; n != 1 {
		t.Errorf("%d packets are dropped for their TTL", n)
	}
}
