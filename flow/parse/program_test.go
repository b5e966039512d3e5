package parse_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

const bridgeDump = `OFPST_FLOW reply (OF1.5) (xid=0x2):
 cookie=0x5, duration=1.2s, table=Root, n_packets=0, n_bytes=0, priority=200,ip actions=goto_table:Forward
# a comment
 table=Forward, priority=9,in_port="web-1" actions=output:uplink   # to the uplink, twice

 table=Forward, priority=0 actions=output:"db-1",resubmit(,Extra)
`

const bridgePorts = `OFPST_PORT_DESC reply (OF1.5) (xid=0x2):
 7(db-1): addr:fa:b7:53:74:21:a6
     config:     0
     state:      LIVE
     speed: 0 Mbps now, 0 Mbps max
 9("web-2")
 LOCAL(br-int): addr:ea:8b:d5:8b:2a:4b
`

func TestProgramNumbers(t *testing.T) {
	p, err := parse.Program(parse.Sources{
		Flows:  parse.Text("b.flows", bridgeDump),
		Groups: parse.Text("b.groups", "group_id=1,type=all,bucket=resubmit(,Late)\n"),
		Meters: parse.Text("b.meters", "OFPST_METER_CONFIG reply (OF1.5) (xid=0x2):\nmeter=1 pktps bands=\ntype=drop rate=5\n\nmeter=2 kbps bands=\ntype=drop rate=5\n"),
		Ports:  parse.Text("b.ports", bridgePorts),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"Root", "Forward", "Extra", "Late"} {
		if p.Names.Table(uint8(i)) != name {
			t.Errorf("table %d is %q, want %q", i, p.Names.Table(uint8(i)), name)
		}
	}
	for port, name := range map[uint32]string{7: "db-1", 9: "web-2", 32768: "web-1", 32769: "uplink", flow.PortLocal: "br-int"} {
		if p.Names.Port(port) != name {
			t.Errorf("port %d is %q, want %q", port, p.Names.Port(port), name)
		}
	}
	if p.First != 0 || len(p.Entries) != 3 || len(p.Groups) != 1 || len(p.Meters) != 2 {
		t.Errorf("first %d, %d entries, %d groups, %d meters", p.First, len(p.Entries), len(p.Groups), len(p.Meters))
	}
	if got, want := p.Entries[1].String(), " table=1, priority=9,in_port=32768 actions=output:32769"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Packets enter at the table of the first line, which may differ from 0.
func TestProgramFirst(t *testing.T) {
	p, err := parse.Program(parse.Sources{Flows: parse.Text("f", "table=5 actions=resubmit(,7)\ntable=0 actions=drop\n")})
	if err != nil || p.First != 5 {
		t.Fatalf("first %v, %v", p, err)
	}
}

// Given names are used and not changed, and numbers work too.
func TestProgramGivenNames(t *testing.T) {
	given := ovsNames()
	p, err := parse.Program(parse.Sources{Flows: parse.Text("f", "table=with-dash,in_port=p1 actions=output:new\ntable=2 actions=drop\n"), Names: given})
	if err != nil {
		t.Fatal(err)
	}
	if p.Entries[0].Table != 3 || p.Entries[1].Table != 2 {
		t.Errorf("tables %d, %d", p.Entries[0].Table, p.Entries[1].Table)
	}
	if _, known := given.PortID("new"); known {
		t.Error("the given names were changed")
	}
}

// All wrong lines of all files are reported at once, and the program is nil.
func TestProgramErrors(t *testing.T) {
	p, err := parse.Program(parse.Sources{
		Flows:  parse.Text("node-a.flows", "table=0,tcp,nw_srcc=1.2.3.4 actions=drop\n\ntable=0 actions=drop\n# x\ntable=A actions=bogus\n"),
		Groups: parse.Text("node-a.groups", "group_id=1,type=all\ngroup_id=1,type=all\n"),
		Meters: parse.Text("node-a.meters", "meter=1 kbps\n"),
		Ports:  parse.Text("node-a.ports", "1[eth0]\n"),
	})
	if p != nil {
		t.Error("there is a program in spite of errors")
	}
	want := `node-a.ports:1:1: expected NUMBER(NAME), as dump-ports-desc prints it
node-a.flows:1:13: unknown field "nw_srcc" (did you mean nw_src?)
node-a.flows:5:7: table A: tables have either names or numbers in one program, not both
node-a.groups:2:1: group 1 is there already
node-a.meters:1:1: meter 1 needs a band, as in bands=type=drop rate=100`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	var one *flow.Error
	if !errors.As(err, &one) || one.File != "node-a.ports" {
		t.Errorf("errors.As finds %v", one)
	}
}

// Errors are listed up to a bound.
func TestProgramErrorsBounded(t *testing.T) {
	_, err := parse.Program(parse.Sources{Flows: parse.Text("f", strings.Repeat("reg99=1 actions=drop\n", 50))})
	var all *parse.Errors
	if !errors.As(err, &all) || len(all.List) != 20 || all.More != 30 {
		t.Fatalf("%v", err)
	}
	if !strings.HasSuffix(err.Error(), "\nand 30 more") {
		t.Errorf("the text does not say how many more: %v", err)
	}
}

// Without a table, a line is for table 0 if tables have numbers, and wrong if
// they have names.
func TestProgramTableMissing(t *testing.T) {
	if _, err := parse.Program(parse.Sources{Flows: parse.Text("f", "actions=drop\ntable=3 actions=drop\n")}); err != nil {
		t.Error(err)
	}
	_, err := parse.Program(parse.Sources{Flows: parse.Text("f", "table=A actions=drop\npriority=5 actions=drop\n")})
	if err == nil || !strings.HasPrefix(err.Error(), "f:2:1: expected table=NAME") {
		t.Errorf("got %v", err)
	}
}

// More tables than numbers are refused, not wrapped.
func TestProgramTooManyTables(t *testing.T) {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "table=T%d actions=drop\n", i)
	}
	_, err := parse.Program(parse.Sources{Flows: parse.Text("f", b.String())})
	if err == nil || !strings.Contains(err.Error(), "f:256:7: no number is left") {
		t.Errorf("got %v", err)
	}
}

// Errors of a text without a name, or of one line, omit the file or the line.
func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  flow.Error
		want string
	}{
		{flow.Error{File: "a.flows", Line: 12, Column: 34, Msg: "x"}, "a.flows:12:34: x"},
		{flow.Error{File: "", Line: 12, Column: 34, Msg: "x"}, "12:34: x"},
		{flow.Error{File: "", Line: 0, Column: 34, Msg: "x"}, "column 34: x"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Too deep nesting and too long lines are refused.
func TestBounds(t *testing.T) {
	for _, line := range []string{
		"actions=" + strings.Repeat("clone(", 1000) + "drop" + strings.Repeat(")", 1000),
		"actions=" + strings.Repeat("clone(", 20000),
		"ip actions=drop" + strings.Repeat(" ", 70000),
	} {
		if e, err := parse.Entry(line, nil); err == nil {
			t.Errorf("%.40s… is taken as %.40s", line, e)
		}
	}
}
