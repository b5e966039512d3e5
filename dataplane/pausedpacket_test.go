package dataplane_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// paused sends a packet that an entry pauses, and is what the controller gives back.
func (r *rig) paused(t *testing.T, packet string) *telemetry.Paused {
	t.Helper()
	if got := r.outcome(packet); got != "agent" {
		t.Fatalf("the packet went to %q, want the agent only", got)
	}
	pi := r.packetIns[len(r.packetIns)-1]
	p := &telemetry.Paused{InPort: pi.InPort, Rests: pi.Rests, Frame: pi.Frame}
	for _, id := range []flow.FieldID{flow.Reg0 + 1, flow.PktMark, flow.CTState, flow.CTMark, flow.TunDst} {
		p.Fields.AddExact(id, flow.FieldByID(id).Get(&pi.Key))
	}
	return p
}

// TestResume goes on with paused packets: with the actions behind the pause and in the lists
// around it, with registers, with marks, and with what conntrack has said.
func TestResume(t *testing.T) {
	for _, c := range []struct {
		name, flows string
		want        []uint32
	}{
		{"nothing is left", "table=0 actions=controller(pause)", nil},
		{"an output", "table=0 actions=controller(pause),output:2", []uint32{2}},
		{"a jump", "table=0 actions=set_field:7->reg1,controller(pause),goto_table:1\ntable=1,reg1=7 actions=output:3", []uint32{3}},
		{"lists around it", "table=0 actions=resubmit(,1),output:4\ntable=1 actions=resubmit(,2),output:3\ntable=2 actions=controller(pause),output:2", []uint32{2, 3, 4}},
		{"the table of a list", "table=0 actions=resubmit(,1),set_field:1->reg1,resubmit:3\ntable=1 actions=controller(pause)\ntable=0,in_port=3,reg1=1,priority=40000 actions=output:2", []uint32{2}},
		{"a clone alone", "table=0 actions=clone(controller(pause),output:2)", []uint32{2}},
		{"what conntrack said", "table=0,ip actions=ct(commit,zone=5,exec(set_field:3->ct_mark)),ct(zone=5,table=1)\n" +
			"table=1,ct_state=+trk,ip,ct_mark=3 actions=controller(pause),resubmit(,2)\ntable=2,ct_state=+trk,ct_mark=3,ip actions=output:2", []uint32{2}},
		{"another ct()", "table=0,ip actions=controller(pause),ct(zone=5,table=1)\ntable=1,ct_state=+trk+new,ip actions=ct(commit,zone=5),output:2", []uint32{2}},
		{"a second pause", "table=0 actions=controller(pause),controller(pause),output:2", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.flows)
			p := r.paused(t, anyTCP)
			r.check(r.sw.Resume(p))
			var ports []uint32
			for _, s := range r.collect() {
				ports = append(ports, s.port)
				wantSound(t, s.frame)
			}
			if slices.Sort(ports); !slices.Equal(ports, c.want) {
				t.Errorf("sent to %v, want %v", ports, c.want)
			}
		})
	}
}

// TestResumedCookies: a packet-in of a resumed list of actions has the cookie of the list's entry, and so
// has what a second pause leaves.
func TestResumedCookies(t *testing.T) {
	r := newRig(t, "table=0,cookie=0x10 actions=resubmit(,1),controller(id=7,max_len=20),output:2\n"+
		"table=1,cookie=0x11 actions=controller(pause),resubmit(,2),controller(pause,userdata=01)\ntable=2,cookie=0x12 actions=controller")
	p := r.paused(t, anyTCP)
	first := len(r.packetIns)
	r.check(r.sw.Resume(p))
	r.sw.Poll()
	p.Rests = r.packetIns[first+1].Rests // the walk has stopped at the second pause
	r.check(r.sw.Resume(p))
	r.sw.Poll()
	r.wantPorts(r.collect(), 2)
	var cookies []uint64
	for _, pi := range r.packetIns[first:] {
		cookies = append(cookies, pi.Entry.Cookie)
	}
	if want := []uint64{0x12, 0x11, 0x10}; !slices.Equal(cookies, want) {
		t.Errorf("packet-ins have the cookies %#x, want %#x", cookies, want)
	}
	if last := r.packetIns[len(r.packetIns)-1].Entry; last.Table != 0 || !slices.ContainsFunc(last.Actions, func(a flow.Action) bool { c, is := a.(flow.Controller); return is && c.ID == 7 }) {
		t.Errorf("the last packet-in is of %v", last)
	}
}

// TestResumeRefused: what cannot be done is said, and nothing is sent.
func TestResumeRefused(t *testing.T) {
	r := newRig(t, "table=0 actions=controller(pause),output:2")
	good := *r.paused(t, anyTCP)
	short, header, group := good, good, good
	short.Frame = good.Frame[:13]
	header.Fields.AddExact(flow.IPSrc, flow.Value{Lo: 1})
	group.Rests = []telemetry.Rest{{Actions: r.actions("group:99")}}
	for _, c := range []struct {
		p    telemetry.Paused
		want string
	}{
		{short, "shorter than an Ethernet header"}, {header, "a field of a header"}, {group, "group 99 does not exist"},
	} {
		if err := r.sw.Resume(&c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	r.wantPorts(r.collect())
}
