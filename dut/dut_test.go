package dut_test

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/packet/packettest"
)

// TestBadRequests checks that what cannot be done is said, and that the switch
// is as it was before.
func TestBadRequests(t *testing.T) {
	p := newPeer(t)
	p.must(map[string]any{"op": "reset", "flows": []string{"table=0,tcp actions=ct(commit,zone=7,table=1)", "table=1 actions=output:11"}})
	p.must(map[string]any{"op": "ctl", "args": []string{"dpctl/ct-set-limits", "zone=7,limit=100"}})
	for _, c := range []struct{ request, want string }{
		{`nonsense`, "not a request"},
		{`{"op":"rx","port":"one"}`, "not a request"},
		{``, "not a request"},
		{`{}`, "unknown op"},
		{`{"op":"dance"}`, `unknown op "dance"`},
		{`{"op":"rx","port":1,"hex":"0"}`, "hex"},
		{`{"op":"rx","port":1,"hex":"zz"}`, "hex"},
		{`{"op":"rx","port":0,"hex":"00"}`, "there is no port 0"},
		{`{"op":"rx","port":65,"hex":"00"}`, "there is no port 65"},
		{`{"op":"warp","ms":-1}`, "clock"},
		{`{"op":"warp","ms":9223372036854775807}`, "clock"},
		{`{"op":"reset","flows":["table=0 actions=output:2","table=0,tcp actions=outptu:3"]}`, "flows:2:"},
		{`{"op":"reset","flows":["table=0 actions=group:4"]}`, "group 4 does not exist"},
		{`{"op":"reset","groups":["group_id=x"]}`, "groups:1:"},
		{`{"op":"ctl"}`, "no command"},
		{`{"op":"ctl","args":["dpctl/dance"]}`, `unknown command "dpctl/dance"`},
		{`{"op":"ctl","args":["dpctl/ct-set-maxconns"]}`, "one number"},
		{`{"op":"ctl","args":["dpctl/ct-set-maxconns","many"]}`, "many"},
		{`{"op":"ctl","args":["dpctl/ct-set-limits","zone=7,limit=0","zone=x,limit=1"]}`, "zone=N,limit=N"},
		{`{"op":"ctl","args":["dpctl/ct-set-limits","zone=7,limit=0x"]}`, "zone=N,limit=N"},
		{`{"op":"ctl","args":["dpctl/ct-set-limits","zone=70000,limit=1"]}`, "zone=N,limit=N"},
		{`{"op":"ctl","args":["dpctl/ct-get-limits","7"]}`, "zone=N"},
		{`{"op":"ctl","args":["dpctl/ct-del-limits","zone=7,x"]}`, "zone"},
	} {
		if a := p.line([]byte(c.request)); !strings.Contains(a.Error, c.want) {
			t.Errorf("%s: error %q, want %q", c.request, a.Error, c.want)
		}
	}
	frame := hex.EncodeToString(packettest.TCP4(packettest.Options{}))
	out := p.must(map[string]any{"op": "rx", "port": 1, "hex": frame}).Out
	if ports := slices.Collect(maps.Keys(out)); !slices.Equal(ports, []uint32{11}) || !slices.Equal(out[11], []string{frame}) {
		t.Errorf("after them a packet left as %v", out)
	}
	limits := p.must(map[string]any{"op": "ctl", "args": []string{"dpctl/ct-get-limits", "zone=7"}}).Ctl
	if want := "default limit=0\nzone=7,limit=100,count=1\n"; limits != want {
		t.Errorf("limits %q, want %q", limits, want)
	}
}

// TestGroupsAndMeters loads a whole program.
func TestGroupsAndMeters(t *testing.T) {
	p := newPeer(t)
	p.must(map[string]any{
		"op": "reset", "flows": []string{"table=0 actions=meter:1,group:4"},
		"groups": []string{"group_id=4,type=select,bucket=actions=output:12"},
		"meters": []string{"meter=1 pktps bands=", "type=drop rate=1"},
	})
	frame := map[string]any{"op": "rx", "port": 1, "hex": hex.EncodeToString(packettest.TCP4(packettest.Options{}))}
	first, second := p.must(frame).Out, p.must(frame).Out
	p.must(map[string]any{"op": "warp", "ms": 1000})
	if third := p.must(frame).Out; len(first[12]) != 1 || len(second) != 0 || len(third[12]) != 1 {
		t.Errorf("left: %v, then %v, then, a second later, %v", first, second, third)
	}
}

// TestResetForgets checks that nothing outlives a reset but the clock.
func TestResetForgets(t *testing.T) {
	p := newPeer(t)
	flows := map[string]any{"op": "reset", "flows": []string{"table=0,tcp actions=ct(commit,zone=7),output:2"}}
	p.must(flows)
	p.must(map[string]any{"op": "rx", "port": 1, "hex": hex.EncodeToString(packettest.TCP4(packettest.Options{}))})
	if rows := p.must(map[string]any{"op": "ct"}).CT; len(rows) != 1 {
		t.Fatalf("connections: %q", rows)
	}
	p.must(flows)
	if rows := p.must(map[string]any{"op": "ct"}).CT; len(rows) != 0 {
		t.Errorf("after a reset: %q", rows)
	}
}
