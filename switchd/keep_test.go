package switchd

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/switchd/local"
)

// runProcess runs a switch process in this one, without ports, until the test stops it.
func runProcess(t *testing.T, dir string, log *bytes.Buffer) (c *door.Client, stop func()) {
	t.Helper()
	p := &Process{
		Socket: filepath.Join(dir, "switch.sock"), Dir: filepath.Join(dir, "files"), Release: "test",
		Settings: local.Settings{Workers: 1, Offload: local.OffloadOff, Conntrack: local.Conntrack{Max: 2048}},
		Log:      slog.New(slog.NewTextHandler(log, nil)),
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	c = door.Dial(p.Socket)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := c.Info(ctx)
		if err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the switch ended: %v\n%s", err, log)
		default:
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	return c, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

const keptFlows = `
table=0, priority=100,in_port=1,ip actions=ct(table=1,zone=7)
table=0, priority=5,in_port=3 actions=controller(max_len=128,id=1)
table=1, priority=9,ct_state=+new+trk actions=group:4
table=1, priority=8,ct_state=-new+trk actions=output:1
`

// TestSwitchGoesOn: a restarted switch has the entries, names, groups, meters and learned entries
// of its predecessor. It answers only after it has them.
func TestSwitchGoesOn(t *testing.T) {
	dir, log := t.TempDir(), &bytes.Buffer{}
	c, stop := runProcess(t, dir, log)
	prog, err := parse.Program(parse.Sources{
		Flows: parse.Text("flows", keptFlows), Groups: parse.Text("groups", "group_id=4,type=select,bucket=bucket_id:0,weight:100,actions=output:2"),
		Meters: parse.Text("meters", "meter=1 pktps burst stats bands=\ntype=drop rate=100 burst_size=200"),
	})
	if err != nil {
		t.Fatal(err)
	}
	prog.Names.SetTable(1, "Output")
	learned, err := parse.Entry("table=1,idle_timeout=300,priority=77,ip,nw_src=10.0.0.9 actions=output:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(flow.BundleOf(prog)); err != nil {
		t.Fatal(err)
	}
	if err := c.Relearn([]telemetry.Learned{{Entry: learned, Age: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	before := texts(c)
	stop()
	if _, err := os.Stat(filepath.Join(dir, "switch.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket is there: %v", err)
	}
	log.Reset()
	c, stop = runProcess(t, dir, log)
	defer stop()
	if after := texts(c); after != before {
		t.Errorf("before\n%s\nafter\n%s\n%s", before, after, log)
	}
	if c.Names().Table(1) != "Output" || !strings.Contains(log.String(), "entries and ports restored") {
		t.Errorf("names %v, log %s", c.Names(), log)
	}
}

// texts is everything that is installed.
func texts(c *door.Client) string {
	var b strings.Builder
	for _, f := range c.Flows() {
		b.WriteString(f.Entry.String() + "\n")
	}
	for _, g := range c.Groups() {
		b.WriteString(g.Text(nil) + "\n")
	}
	for _, m := range c.Meters() {
		b.WriteString(m.Text() + "\n")
	}
	return b.String()
}

// TestKeptIsNotBelieved: a file that is torn, of another schema, of another boot or from the
// future is ignored, and the error says why.
func TestKeptIsNotBelieved(t *testing.T) {
	dir, log := t.TempDir(), &bytes.Buffer{}
	c, stop := runProcess(t, dir, log)
	e, err := parse.Entry("table=0,priority=1 actions=drop", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(&flow.Bundle{Replace: true, Names: flow.NewNames(), Add: []*flow.Entry{e}}); err != nil {
		t.Fatal(err)
	}
	stop()
	path := filepath.Join(dir, "files", keptFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clock, err := BootClock()
	if err != nil {
		t.Fatal(err)
	}
	if _, bundle, err := readKept(path, clock()); err != nil || len(bundle.Add) != 1 {
		t.Fatalf("%+v, %v", bundle, err)
	}
	again := func(old, new string) []byte { // with a right checksum
		_, rest, _ := bytes.Cut(bytes.Replace(good, []byte(old), []byte(new), 1), []byte("\n"))
		return append([]byte(keptSchema+sumOf(rest)+"\n"), rest...)
	}
	for want, text := range map[string][]byte{
		"its checksum is wrong":    good[:len(good)-3],
		"another schema":           []byte("antrail switch 9 x\n"),
		"earlier boot":             again(`"boot":"`, `"boot":"0`),
		"behind line 2: line 3":    again("flow add", "flow sub"),
		"line 2":                   again(`{"boot"`, `["boot"`),
		"it is from the future":    again(`"takenNS":`, `"takenNS":9`),
		"no plain file of this us": nil,
	} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if text == nil {
			err = os.Symlink("/etc/hostname", path)
		} else {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := readKept(path, clock()); err == nil || text != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
