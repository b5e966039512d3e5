package ofserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// events are the messages of a monitor, up to the one about the cookie 0xe0d, which the caller
// causes last. Each has the lines about entries, sorted. tick is called while messages are missing.
func (w *watcher) events(tick func()) (all []string) {
	w.t.Helper()
	var message []string
	end := func() {
		if slices.Sort(message); len(message) > 0 {
			all = append(all, strings.Join(message, "\n"))
		}
		message = nil
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: the last event has not come after %q", w.dir, all)
		}
		select {
		case l, ok := <-w.lines:
			switch {
			case !ok:
				w.t.Fatalf("%s: the monitor has ended after %q", w.dir, all)
			case strings.Contains(l, "cookie=0xe0d"):
				end()
				return all
			case strings.Contains(l, "cookie=0x99"), strings.Contains(l, "table=9"):
			case strings.Contains(l, "FLOW_MONITOR"):
				end()
			case strings.Contains(l, "event="):
				message = append(message, l)
			}
		case <-time.After(20 * time.Millisecond):
			tick()
		}
	}
}

// monitored are the flags of monitors, with the versions that have them.
var monitored = []struct{ versions, spec string }{
	{"10 13 14 15", ""}, {"10 15", "!initial,!add"}, {"13", "!delete"}, {"14", "!modify"}, {"10 13", "!actions"},
	{"10 13 14 15", "table=2"}, {"10 15", "out_port=2"}, {"14 15", "out_group=1"}, {"10 13 14 15", "!own,tcp,nw_dst=10.0.0.0/8"},
}

// TestFlowMonitorsAsOpenVSwitch adds, modifies and removes entries in all ways. Our switch and
// Open vSwitch send a controller that monitors them the same messages.
func TestFlowMonitorsAsOpenVSwitch(t *testing.T) {
	for _, m := range monitored {
		for _, version := range strings.Fields(m.versions) {
			t.Run("OpenFlow"+version+" "+m.spec, func(t *testing.T) {
				t.Parallel()
				ovs := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1}, ovstest.Port{Name: "p2", Number: 2})
				r := newRig(t)
				got := monitorEntries(t, r.dir, version, m.spec, r.expire)
				want := monitorEntries(t, ovs.Dir, version, m.spec, func() {})
				if !slices.Equal(got, want) {
					t.Errorf("%d messages, from Open vSwitch %d:\n%s", len(got), len(want), difference(got, want))
				}
				if len(want) == 0 {
					t.Errorf("only %q", want)
				}
			})
		}
	}
}

// expire removes entries whose timeouts have passed, and notifies monitors.
func (r *rig) expire() {
	r.sw.Expire()
	r.server.changes.Lock()
	defer r.server.changes.Unlock()
	if r.server.watch.running {
		if err := r.server.watch.reportDifferences(r.server); err != nil {
			r.t.Error(err)
		}
	}
}

// monitorEntries are the events of a series of changes.
func monitorEntries(t *testing.T, dir, version, spec string, tick func()) []string {
	w := &watcher{t: t, dir: dir}
	modern, last := version != "10", "output:2"
	w.do(version, "add-flow", "cookie=0x5,table=1,priority=3,tcp,nw_dst=10.0.0.1,idle_timeout=50,hard_timeout=100,actions=output:1")
	w.do(version, "add-flow", "cookie=0x6,priority=4,actions=output:2")
	if modern {
		last += ",group:1"
		w.do(version, "add-group", "group_id=1,type=all,bucket=output:1")
		w.do(version, "add-group", "group_id=2,type=all,bucket=output:1")
		w.do(version, "add-meter", "meter=1,kbps,band=type=drop,rate=10")
		w.do(version, "add-flow", "cookie=0x7,table=2,priority=1,actions=group:1")
		w.do(version, "add-flow", "cookie=0x9,table=2,priority=3,udp,actions=group:2,group:1")
		w.do(version, "add-flow", "cookie=0x8,table=2,priority=2,ip,actions=meter:1,output:1")
	}
	w = watch(t, dir, version, "watch:"+spec)
	w.do(version, "add-flow", "cookie=0x10,table=2,tcp,nw_dst=10.0.0.2,actions=drop")
	w.do(version, "add-flow", "cookie=0x11,table=2,tcp,nw_dst=10.0.0.2,actions=output:2") // in the place of another
	w.do(version, "mod-flows", "table=2,tcp,actions=output:1")
	w.do(version, "mod-flows", "table=2,tcp,actions=output:1") // which changes nothing
	w.do(version, "add-flow", "table=3,ipv6,reg1=0x5/0xf,dl_vlan=7,actions=set_field:3->reg2,ct(commit,zone=5,exec(set_field:1->ct_mark)),output:2")
	if modern {
		w.do(version, "add-flows", "testdata/entries"+version+".flows")
	}
	w.do(version, "del-flows", "table=1")
	w.do(version, "del-flows", "ip")
	if modern {
		w.do(version, "del-groups", "group_id=2")
	}
	if spec == "" {
		w.do(version, "add-flow", "cookie=0x12,table=204,idle_timeout=1,actions=output:2")
		waitEmpty(w, version, 204, tick)
		w.do(version, "add-flow", "cookie=0x13,table=205,hard_timeout=1,actions=output:2")
		waitEmpty(w, version, 205, tick)
	}
	w.do(version, "add-flow", "cookie=0xe0d,table=2,tcp,nw_dst=10.9.9.9,actions="+last)
	w.do(version, "mod-flows", "cookie=0xe0d/-1,table=2,tcp,nw_dst=10.9.9.9,actions=output:1")
	w.do(version, "del-flows", "cookie=0xe0d/-1")
	return w.events(tick)
}

// waitEmpty returns when a table has no entry. In antrail, tick expires them.
func waitEmpty(w *watcher, version string, table int, tick func()) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		tick()
		text, ok := ofctl(w.t, w.dir, "-OOpenFlow"+version, "dump-flows", bridge, fmt.Sprintf("table=%d", table))
		if ok && !strings.Contains(text, "cookie=") {
			tick() // an entry that has expired is listed no more before it is removed
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("table %d has %s", table, text)
		}
	}
}

// monitors is a connection of OpenFlow 1.5 that has asked for a flow monitor.
func (r *rig) monitors(t *testing.T, request []byte) *raw {
	t.Helper()
	c := r.connect(t, openflow.V15)
	c.write(request)
	return c
}

// monitor15 is a monitor of OpenFlow 1.5 of all entries, with some flags.
func monitor15(flags byte) []byte {
	return []byte{6, 18, 0, 40, 0, 0, 0, 5, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 0, flags, 255, 0, 0, 1, 0, 4, 0, 0, 0, 0}
}

// withCommand is flowMod with another command.
func withCommand(t *testing.T, command openflow.FlowCommand, text string) []byte {
	t.Helper()
	const at = 25
	b := flowMod(t, 1, text)
	b[at] = byte(command)
	return b
}

// TestOwnChangesAreAbbreviated: a controller gets the numbers of its own changes before the barrier
// that follows them. With MonitorOwn it gets the changes in full.
func TestOwnChangesAreAbbreviated(t *testing.T) {
	for flags, event := range map[byte]string{0x1f: "event=ABBREV xid=0x11", 0x3f: "event=ADDED table=9", 0x5f: "event=ADDED table=9"} {
		r := newRig(t)
		m := r.monitors(t, monitor15(flags))
		if text := ofpPrint(t, m.next()); !strings.Contains(text, "FLOW_MONITOR reply") {
			t.Fatal(text)
		}
		m.write(flowMod(t, 0x11, "table=9,ip,actions=drop"))
		m.write(bundleMessage(20, 12))
		if text := ofpPrint(t, m.next()); !strings.Contains(text, event) {
			t.Errorf("flags %#x: %s, want %s", flags, text, event)
		}
		if text := ofpPrint(t, m.next()); !strings.Contains(text, "BARRIER_REPLY") {
			t.Error(text)
		}
	}
}

// TestMonitorsPause: the monitors of a controller that does not read pause. When it reads again, it
// gets the pause, the entries removed meanwhile, the entries added, and that the monitors resume.
func TestMonitorsPause(t *testing.T) {
	r := newRig(t)
	m := r.monitors(t, monitor15(0x1f))
	m.next() // no entries
	var told []string
	add := func(i int) string {
		return fmt.Sprintf("cookie=%#x,table=7,priority=%d,ipv6,ipv6_src=fd00::%x,actions=output:1", i, i, i)
	}
	other := r.monitors(t, flowMod(t, 1, add(1)))
	const most = 20000
	n := 2
	for ; n < most && r.pausedMonitors() == 0; n++ {
		other.write(flowMod(t, uint32(n), add(n)))
	}
	other.barrier()
	if r.pausedMonitors() != 1 {
		t.Fatalf("%d entries came, and no monitor pauses", n)
	}
	other.write(withCommand(t, openflow.FlowDeleteStrict, add(1))) // the controller knows it
	other.write(withCommand(t, openflow.FlowModifyStrict, strings.Replace(add(2), "output:1", "output:2", 1)))
	other.write(flowMod(t, 3, add(most+1)))
	other.write(withCommand(t, openflow.FlowDeleteStrict, add(most+1))) // it does not
	other.write(flowMod(t, 3, add(most+2)))
	other.barrier()
	for !slices.Contains(told, "event=RESUMED") {
		for _, l := range strings.Split(ofpPrint(t, m.next()), "\n")[1:] {
			if l = strings.TrimSpace(l); l != "" {
				told = append(told, strings.Split(l, " ipv6")[0])
			}
		}
	}
	paused := slices.Index(told, "event=PAUSED")
	if paused < 100 {
		t.Fatalf("%q", told)
	}
	for i, l := range told[:paused] {
		if want := fmt.Sprintf("event=ADDED table=7 cookie=%#x", i+1); l != want {
			t.Fatalf("%d is %q, want %q", i, l, want)
		}
	}
	after := told[paused+1:]
	if after[0] != "event=DELETED reason=delete table=7 cookie=0x1" {
		t.Errorf("after the pause: %q", after[0])
	}
	text := strings.Join(after, "\n")
	for event, times := range map[string]int{
		"event=MODIFIED table=7 cookie=0x2\n": 1, fmt.Sprintf("cookie=%#x\n", most+1): 0, fmt.Sprintf("event=ADDED table=7 cookie=%#x\n", most+2): 1, "DELETED": 1,
	} {
		if got := strings.Count(text, event); got != times {
			t.Errorf("%q is told %d times, want %d", event, got, times)
		}
	}
	if r.pausedMonitors() != 0 {
		t.Error("monitors still pause")
	}
}

// barrier waits for the answer to a barrier request, which must be the next message.
func (c *raw) barrier() {
	c.t.Helper()
	c.write(bundleMessage(20, 12))
	if text := ofpPrint(c.t, c.next()); !strings.Contains(text, "BARRIER_REPLY") {
		c.t.Fatal(text)
	}
}

// pausedMonitors are how many connections have monitors that pause.
func (r *rig) pausedMonitors() (n int) {
	r.server.changes.Lock()
	defer r.server.changes.Unlock()
	for c := range r.server.watch.monitors {
		if c.monitors.updates.pausedSince() != 0 {
			n++
		}
	}
	return n
}

// TestMonitorErrors: wrong requests of monitors are refused.
func TestMonitorErrors(t *testing.T) {
	r := newRig(t)
	bad := monitor15(0x80)
	m := r.monitors(t, bad)
	expect := func(name string) {
		t.Helper()
		if text := ofpPrint(t, m.next()); !strings.Contains(text, name) {
			t.Errorf("%s, want %s", text, name)
		}
	}
	with := func(at int, v byte) []byte {
		b := monitor15(0x1f)
		b[at] = v
		return b
	}
	expect("OFPMOFC_BAD_FLAGS")
	m.write(with(31, 1))
	expect("OFPMOFC_UNKNOWN_MONITOR")
	m.write(with(31, 9))
	expect("OFPMOFC_BAD_COMMAND")
	m.write(with(30, 254))
	expect("OFPBRC_BAD_TABLE_ID")
	m.write(monitor15(0x1f))
	expect("FLOW_MONITOR reply")
	m.write(monitor15(0x1f))
	expect("OFPMOFC_MONITOR_EXISTS")
	m.write(with(31, 1))
	expect("FLOW_MONITOR reply")
	m.write(with(31, 2))
	expect("FLOW_MONITOR reply")
	m.write(with(31, 2))
	expect("OFPMOFC_UNKNOWN_MONITOR")
}

// TestLearnedEntriesAreTold: a monitor reports an entry that a packet has learned, and its removal.
func TestLearnedEntriesAreTold(t *testing.T) {
	r := newRig(t)
	r.monitors(t, flowMod(t, 1, "ip,actions=learn(table=3,cookie=0x77,hard_timeout=1,dl_type=0x800,NXM_OF_IP_SRC[],output:NXM_OF_IN_PORT[])")).barrier()
	m := r.monitors(t, monitor15(0x1e))
	m.next()
	if err := r.ports[1].Send(packettest.UDP4(packettest.Options{SrcPort: 1000, DstPort: 53})); err != nil {
		t.Fatal(err)
	}
	r.sw.Poll()
	if text := ofpPrint(t, m.next()); !strings.Contains(text, "event=ADDED table=3 hard_timeout=1 cookie=0x77") {
		t.Error(text)
	}
	for deadline := time.Now().Add(20 * time.Second); len(r.sw.FlowsIn(3)) > 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
	}
	r.sw.Expire()
	if text := ofpPrint(t, m.next()); !strings.Contains(text, "event=DELETED reason=hard table=3") {
		t.Error(text)
	}
}
