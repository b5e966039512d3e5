package parse_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// FuzzParseEntry: no text makes the parser panic, and an entry that it reads
// prints as text that reads and prints the same.
func FuzzParseEntry(f *testing.F) {
	for _, w := range wrongLines {
		f.Add(w.line)
	}
	src, _ := golden(f)
	for _, l := range strings.Split(src.Flows.Text, "\n") {
		f.Add(l)
	}
	f.Add("tun_metadata0=0x1234/0xffff,tun_metadata1,tun_metadata7=0 actions=set_field:5->tun_metadata3,move:NXM_NX_TUN_METADATA0[16..30]->NXM_NX_REG14[0..14]")
	f.Fuzz(func(t *testing.T, line string) {
		format := flow.Format{Names: ovsNames()}
		e, err := parse.Entry(line, ovsNames())
		if (e == nil) == (err == nil) {
			t.Fatalf("entry %v, error %v", e, err)
		}
		wantAgain(t, line, e, err)
		if err != nil {
			return
		}
		printed := e.Text(format)
		again, err := parse.Entry(printed, ovsNames())
		if err != nil {
			t.Fatalf("%q prints as %q, which is refused: %v", line, printed, err)
		}
		if text := again.Text(format); text != printed {
			t.Fatalf("%q prints as %q, which prints as %q", line, printed, text)
		}
		if again.Match != e.Match {
			t.Fatalf("%q prints as %q, which matches otherwise", line, printed)
		}
	})
}

// wantAgain: a parser that has read other lines reads a line as a new parser
// does.
func wantAgain(t *testing.T, line string, e *flow.Entry, err error) {
	t.Helper()
	const other = "table=1,priority=7,udp,tp_dst=5 actions=clone(push_vlan:0x8100,drop),ct(commit,exec(set_field:1->ct_mark)),mod_tp_dst:4"
	used := parse.NewParser(ovsNames())
	for range 2 { // the second time with memory that the line has used
		same, sameErr := used.Entry(line)
		used.Entry(other)
		if !reflect.DeepEqual(same, e) || !reflect.DeepEqual(sameErr, err) {
			t.Fatalf("%q after other lines: %v, %v; expected %v, %v", line, same, sameErr, e, err)
		}
	}
}

// FuzzParseProgram: likewise for whole programs.
func FuzzParseProgram(f *testing.F) {
	f.Add(bridgeDump, "group_id=1,type=all,bucket=resubmit(,Late)", "meter=1 pktps bands=\ntype=drop rate=5", bridgePorts)
	f.Add("table=0 actions=group:1", "group_id=1,type=select,bucket=weight:5,output:1,bucket=actions=output:web", "meter=1 kbps burst stats band=type=drop rate=5 burst_size=4", " 1(a b)")
	f.Fuzz(func(t *testing.T, flows, groups, meters, ports string) {
		p, err := parse.Program(parse.Sources{parse.Text("f", flows), parse.Text("g", groups), parse.Text("m", meters), parse.Text("p", ports), nil})
		if (p == nil) == (err == nil) {
			t.Fatalf("program %v, error %v", p, err)
		}
		if err != nil {
			return
		}
		again, err := parse.Program(parse.Sources{Flows: parse.Text("f", printFlows(p)), Groups: parse.Text("g", printGroups(p)), Meters: parse.Text("m", printMeters(p)), Names: p.Names})
		if err != nil {
			t.Fatalf("what is printed is refused: %v\n%s\n%s\n%s", err, printFlows(p), printGroups(p), printMeters(p))
		}
		if printFlows(again) != printFlows(p) || printGroups(again) != printGroups(p) || printMeters(again) != printMeters(p) {
			t.Fatalf("printed:\n%s%s%sand again:\n%s%s%s", printFlows(p), printGroups(p), printMeters(p), printFlows(again), printGroups(again), printMeters(again))
		}
	})
}

func printFlows(p *flow.Program) string {
	var b []byte
	for _, e := range p.Entries {
		b = append(e.AppendText(b, flow.Format{Names: p.Names}), '\n')
	}
	return string(b)
}

func printGroups(p *flow.Program) string {
	var b []byte
	for _, g := range p.Groups {
		b = append(g.AppendText(b, flow.Format{Names: p.Names}), '\n')
	}
	return string(b)
}

func printMeters(p *flow.Program) string {
	var b []byte
	for _, m := range p.Meters {
		b = append(append(b, m.Text()...), '\n')
	}
	return string(b)
}
