package reach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/ports/memory"
)

const entries = `
cookie=0x11, table=0, priority=10,ip,in_port=1,dl_src=02:00:00:00:00:01,nw_src=10.9.0.1 actions=goto_table:5
cookie=0x11, table=0, priority=10,ip,in_port=2,dl_src=02:00:00:00:00:02,nw_src=10.9.0.2 actions=goto_table:5
cookie=0x11, table=0, priority=10,ip,in_port=3,nw_src=10.9.0.3 actions=goto_table:5
cookie=0x11, table=0, priority=10,ipv6,in_port=1,dl_src=02:00:00:00:00:01,ipv6_src=fd00::1 actions=goto_table:5
cookie=0x12, table=0, priority=9,arp,arp_tpa=10.9.0.254,arp_op=1 actions=set_field:02:00:00:00:00:fe->arp_sha,in_port
cookie=0x13, table=0, priority=5,ip,in_port=1,dl_src=02:00:00:00:00:44 actions=goto_table:6
cookie=0x51, table=5, priority=40,tcp,nw_dst=10.9.1.1 actions=group:1
cookie=0x52, table=5, priority=20,tcp,nw_dst=10.9.0.2,tp_dst=22 actions=drop
cookie=0x53, table=5, priority=10,ip,dl_dst=02:00:00:00:00:02 actions=output:2
cookie=0x54, table=5, priority=12,ip,nw_dst=10.9.0.99 actions=controller(reason=action,max_len=128)
cookie=0x55, table=5, priority=10,ip,dl_dst=02:00:00:00:00:fe actions=output:3
cookie=0x56, table=5, priority=11,ip,nw_dst=10.9.0.98 actions=NORMAL
cookie=0x57, table=5, priority=13,ip,nw_dst=10.9.0.3 actions=output:2
`

const groups = `group_id=1,type=select,bucket=bucket_id:7,weight:1,actions=output:2,bucket=bucket_id:8,weight:1,actions=drop`

const desc = ` 1(v0): addr:02:00:00:00:01:01
 2(v1): addr:02:00:00:00:01:02
 3(v2): addr:02:00:00:00:01:03
`

// entryPipeline is a switch with three ports that runs the entries.
func entryPipeline(t testing.TB) *pipeline.Pipeline {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"x.flows": entries, "x.groups": groups, "x.ports": desc} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := pipeline.Files{Flows: filepath.Join(dir, "x.flows")}.Beside().Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	for no, name := range map[uint32]string{1: "v0", 2: "v1", 3: "v2"} {
		if err := p.Local.AddPort(no, memory.New(name, memory.Options{})); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestEntriesDecide: without objects, the answer names the entry that decides, and says what entries
// do not tell.
func TestEntriesDecide(t *testing.T) {
	p := entryPipeline(t)
	for _, c := range []struct{ from, to, sentence, cookie string }{
		{"10.9.0.1", "10.9.0.2:22", "denied: tcp 22 from 10.9.0.1 at v0 to 10.9.0.2 at v1 ends in table 5 (entry): A flow entry without an output says drop.", "0x52"},
		{"10.9.0.1", "10.9.0.2:80", "allowed: tcp 80 from 10.9.0.1 at v0 to 10.9.0.2 at v1; it leaves by v1", "0x53"},
		{"1", "v1:80", "allowed: tcp 80 from 10.9.0.1 at v0 to 10.9.0.2 at v1; it leaves by v1", "0x53"},
		{"10.9.0.1@v0", "10.9.0.2:80,02:00:00:00:00:02", "allowed: tcp 80 from 10.9.0.1 at v0 to 10.9.0.2 at v1; it leaves by v1", "0x53"},
		{"10.9.0.1", "10.9.0.77:80", "undecided: tcp 80 from 10.9.0.1 at v0 to 10.9.0.77; table 5 asks for the MAC address of 10.9.0.77 (priority=10,ip,dl_dst=02:00:00:00:00:02), which nothing here tells", ""},
		{"10.9.0.1", "10.9.0.77:80,02:00:00:00:00:09", "denied: tcp 80 from 10.9.0.1 at v0 to 10.9.0.77 ends in table 5 (table_miss): ", ""},
		{"10.9.0.1", "10.9.0.99:80", "undecided: tcp 80 from 10.9.0.1 at v0 to 10.9.0.99; the controller gets it, and decides the rest", "0x54"},
		{"10.9.0.1", "10.9.0.98:80", "allowed: tcp 80 from 10.9.0.1 at v0 to 10.9.0.98; NORMAL sends it to the port that has learned the MAC address of 10.9.0.98; without one, it leaves by v1, v2", "0x56"},
		{"10.9.0.1", "10.9.0.254:80", "allowed: tcp 80 from 10.9.0.1 at v0 to 10.9.0.254; it leaves by v2", "0x55"},
		{"10.9.0.1", "10.9.0.3:80", "undecided: tcp 80 from 10.9.0.1 at v0 to 10.9.0.3 at v2; it leaves by v1; 10.9.0.3 is at v2, so what is behind v1 decides the rest", "0x57"},
		{"10.9.0.1", "10.9.1.1:80", "denied for 1 of 2 endpoints: tcp 80 from 10.9.0.1 at v0 to 10.9.1.1 ends in table 5 ", "0x51"},
		{"10.9.0.7@v0", "10.9.0.2:80", "undecided: tcp 80 from 10.9.0.7 at v0 to 10.9.0.2 at v1; table 0 asks for the MAC address of 10.9.0.7 (priority=5,ip,in_port=v0,dl_src=02:00:00:00:00:44), which nothing here tells", ""},
		{"fd00::1", "[fd00::2]:80,02:00:00:00:00:02", "denied: tcp 80 from fd00::1 at v0 to fd00::2 ends in table 5 (table_miss): ", ""},
	} {
		a, err := Why(p, &api.WhyRequest{From: c.from, To: c.to})
		if err != nil {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
			continue
		}
		if !strings.HasPrefix(a.Sentence, c.sentence) || !strings.HasSuffix(c.sentence, " ") && a.Sentence != c.sentence {
			t.Errorf("%s to %s:\n%s\nwant\n%s", c.from, c.to, a.Sentence, c.sentence)
		}
		cookie := ""
		if e := a.Ways[0].Entry; e != nil {
			cookie = e.Cookie
		}
		if cookie != c.cookie {
			t.Errorf("%s to %s: the cookie %q decides, want %q", c.from, c.to, cookie, c.cookie)
		}
	}
}

// TestEndsWithoutObjects: an end that only objects name, and one that nothing ties to a port, are
// errors that say what to give.
func TestEndsWithoutObjects(t *testing.T) {
	p := entryPipeline(t)
	for _, c := range []struct{ from, to, protocol, want string }{
		{"default/a", "10.9.0.2:80", "", `from "default/a": without objects an end is ADDRESS`},
		{"10.9.0.1", "svc:default/b", "", `to "svc:default/b": without objects`},
		{"10.9.0.7", "10.9.0.2:80", "", "tells by which port it sends: say ADDRESS@PORT, with one of v0, v1, v2"},
		{"10.9.0.7@v9", "10.9.0.2:80", "", `the switch has no port "v9"; there are v0, v1, v2`},
		{"10.9.0.1,aa:bb", "10.9.0.2:80", "", `"aa:bb" is not a MAC address`},
		{"10.9.0.1", "10.9.0.2", "", "a port is missing: ADDRESS:PORT"},
		{"10.9.0.1", "10.9.0.2", "gre", `protocol "gre" is none of`},
		{"10.9.0.1", "[fd00::2]:80", "", "10.9.0.1 and fd00::2 are not of one family"},
	} {
		_, err := Why(p, &api.WhyRequest{From: c.from, To: c.to, Protocol: c.protocol})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v, want %q", c.from, c.to, err, c.want)
		}
	}
	if _, err := Why(p, &api.WhyRequest{Carried: &api.Carried{To: "b"}}); err == nil {
		t.Error("a packet of another Node is followed without Nodes")
	}
}

// FuzzEnds: no text of the two ends makes an answer without a way.
func FuzzEnds(f *testing.F) {
	p := entryPipeline(f)
	for _, end := range []string{"10.9.0.1", "10.9.0.2:80", "v1:80", "10.9.0.1,02:00:00:00:00:01@v0", "[fd00::2]:80", "LOCAL", "@", ",@1", "3:"} {
		f.Add(end, end)
	}
	f.Fuzz(func(t *testing.T, from, to string) {
		a, err := Why(p, &api.WhyRequest{From: from, To: to})
		if err == nil && (len(a.Ways) == 0 || a.Sentence == "") {
			t.Errorf("%q to %q: no way", from, to)
		}
	})
}
