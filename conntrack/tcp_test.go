package conntrack

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// tcpStories is connections told segment by segment. A line is
//
//	side flags seq ack length [win=N] [ws=N] | ct_state | state timeout
//
// where side c is the client, s the server; ct_state is without trk; state and
// timeout (seconds) are the dump's, "-" for no connection. Every segment is
// committed. A line "warp 5s" turns the clock.
var tcpStories = map[string]string{
	"CT-10 a whole life": `
		c S  1000 0 0     | new     | SYN_SENT 30
		c S  1000 0 0     | new     | SYN_SENT 30
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 60
		c A  1001 5001 0  | est     | ESTABLISHED 86400
		c FA 1001 5001 0  | est     | CLOSING 900
		s A  5001 1002 0  | est|rpl | TIME_WAIT 900
		s FA 5001 1002 0  | est|rpl | TIME_WAIT 45
		c A  1002 5002 0  | est     | TIME_WAIT 30
		c S  9000 0 0     | new     | SYN_SENT 30`,
	"CT-10 simultaneous open": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s S  5000 0 0     | new     | SYN_SENT 30
		c SA 1000 5001 0  | est     | ESTABLISHED 60
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 86400`,
	"CT-10 a FIN is not over before it is acknowledged": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 60
		c A  1001 5001 0  | est     | ESTABLISHED 86400
		c FA 1001 5001 10 | est     | CLOSING 900
		s FA 5001 1001 0  | est|rpl | CLOSING 45
		s A  5002 1012 0  | est|rpl | TIME_WAIT 45
		c A  1012 5002 0  | est     | TIME_WAIT 30`,
	"CT-9 flags that make no sense": `
		c F  1000 0 0     | inv | -
		c SF 1000 0 0     | inv | -
		c SR 1000 0 0     | inv | -
		c P  1000 0 0     | inv | -
		c SA 1000 1 0     | inv | -
		c S  1000 0 0     | new | SYN_SENT 30
		s SFA 1 1001 0    | inv | SYN_SENT 30`,
	"CT-11, D1 picked up: new until the other side is seen": `
		c A  1000 5000 9  | new     | SYN_SENT 30
		c PA 1009 5000 9  | new     | SYN_SENT 30
		s A  5000 1018 0  | est|rpl | ESTABLISHED 60
		c A  1018 5000 0  | est     | ESTABLISHED 86400`,
	"D2 neither RST nor FIN begins a connection": `
		c R  1000 0 0     | inv | -
		c RA 1000 1 0     | inv | -
		c FA 1000 1 0     | inv | -`,
	"CT-12, D3 data outside the window changes nothing": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 60
		c A  1001 5001 0  | est     | ESTABLISHED 86400
		warp 10s
		c A  71001 5001 1 | est     | ESTABLISHED 86390
		c A  1001 75001 1 | est     | ESTABLISHED 86390
		c FA 71001 5001 0 | est     | ESTABLISHED 86390
		c A  1001 5001 1  | est     | ESTABLISHED 86400`,
	"CT-12 half the sequence space ahead is not behind": `
		c S  1000 0 0 win=1             | new     | SYN_SENT 30
		s SA 5000 1001 0 win=1          | est|rpl | ESTABLISHED 60
		c A  1001 5001 0 win=1          | est     | ESTABLISHED 86400
		c FA 2147484647 5001 100 win=1  | est     | ESTABLISHED 86400`,
	"CT-12 where an empty segment lies says nothing": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 60
		c A  1001 5001 0  | est     | ESTABLISHED 86400
		warp 10s
		c A  71001 5001 0 | est     | ESTABLISHED 86400
		warp 10s
		s A  5001 71001 0 | est|rpl | ESTABLISHED 86390
		c R  71001 0 0    | inv     | ESTABLISHED 86390
		c R  1001 0 0     | est     | TIME_WAIT 10`,
	"CT-12 windows are scaled when both offer it": `
		c S  1000 0 0 ws=7        | new     | SYN_SENT 30
		s SA 5000 1001 0 ws=7     | est|rpl | ESTABLISHED 60
		c A  1001 5001 0 win=1000 | est     | ESTABLISHED 86400
		warp 10s
		s A  105001 1001 1        | est|rpl | ESTABLISHED 86400
		warp 10s
		s A  140000 1001 1        | est|rpl | ESTABLISHED 86390`,
	"CT-12 one offer of a scale is none": `
		c S  1000 0 0 ws=7        | new     | SYN_SENT 30
		s SA 5000 1001 0          | est|rpl | ESTABLISHED 60
		c A  1001 5001 0 win=1000 | est     | ESTABLISHED 86400
		warp 10s
		s A  25001 1001 1         | est|rpl | ESTABLISHED 86390`,
	"CT-13 an exact RST closes": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 60
		c A  1001 5001 0  | est     | ESTABLISHED 86400
		s R  5001 0 0     | est|rpl | TIME_WAIT 10
		c S  9000 0 0     | new     | SYN_SENT 30`,
	"CT-13 a refused connection": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s RA 0 1001 0     | est|rpl | TIME_WAIT 10`,
	"CT-13 a forged refusal": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s RA 0 2222 0     | inv     | SYN_SENT 30
		s R  0 0 0        | inv     | SYN_SENT 30`,
	"CT-13 RST to a picked-up segment": `
		c A  1000 5000 9  | new     | SYN_SENT 30
		s R  5000 0 0     | est|rpl | TIME_WAIT 10`,
	"D4 a RST in the window, not exact, changes nothing": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 60
		c A  1001 5001 0  | est     | ESTABLISHED 86400
		warp 10s
		s R  9000 0 0     | est|rpl | ESTABLISHED 86390
		s R  5000 0 0     | est|rpl | ESTABLISHED 86390
		s R  900000 0 0   | inv     | ESTABLISHED 86390`,
	"D5 a SYN on an established connection, answered: the next one begins": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 60
		c A  1001 5001 0  | est     | ESTABLISHED 86400
		warp 10s
		c S  777777 0 0   | est     | ESTABLISHED 86390
		s SA 90000 777778 0 | est|rpl | ESTABLISHED 60
		c A  777778 90001 0 | est   | ESTABLISHED 86400
		s FA 90001 777778 0 | est|rpl | CLOSING 900`,
	"D5 a SYN that is challenged and reset": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 60
		c A  1001 5001 0  | est     | ESTABLISHED 86400
		c S  777777 0 0   | est     | ESTABLISHED 86400
		s A  5001 1001 0  | est|rpl | ESTABLISHED 86400
		c R  1001 0 0     | est     | TIME_WAIT 10
		c S  777777 0 0   | new     | SYN_SENT 30`,
	"D5 a late copy of the first SYN and its answer": `
		c S  1000 0 0     | new     | SYN_SENT 30
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 60
		c A  1001 5001 9  | est     | ESTABLISHED 86400
		c S  1000 0 0     | est     | ESTABLISHED 86400
		s SA 5000 1001 0  | est|rpl | ESTABLISHED 86400
		c FA 1010 5001 0  | est     | CLOSING 900`,
	"CT-15 an expired connection is not found": `
		c S  1000 0 0     | new     | SYN_SENT 30
		warp 30s
		s SA 5000 1001 0  | inv     | -`,
	"CT-9 a client that tries again with another sequence number": `
		c S  1000 0 0     | new     | SYN_SENT 30
		c S  8000 0 0     | new     | SYN_SENT 30
		s SA 5000 8001 0  | est|rpl | ESTABLISHED 60
		c A  8001 5001 0  | est     | ESTABLISHED 86400`,
}

func TestTCP(t *testing.T) {
	for name, story := range tcpStories {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Config{})
			for _, line := range strings.Split(strings.TrimSpace(story), "\n") {
				b.runLine(strings.TrimSpace(line))
			}
		})
	}
}

// runLine plays one line of a story.
func (b *bench) runLine(line string) {
	b.Helper()
	if d, ok := strings.CutPrefix(line, "warp "); ok {
		pause, err := time.ParseDuration(d)
		if err != nil {
			b.Fatal(err)
		}
		b.warp(pause)
		return
	}
	parts := strings.SplitN(line, " | ", 3)
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	b.enter(parseSegment(b, parts[0]))
	if got, want := b.ct(commit), parts[1]+"|trk"; got != want {
		b.Errorf("%s: ct_state %s, want %s", parts[0], got, want)
	}
	if got := b.onlyState(); got != parts[2] {
		b.Errorf("%s: connection %s, want %s", parts[0], got, parts[2])
	}
}

// onlyState is "state timeout" of the only connection.
func (b *bench) onlyState() string {
	for c := range b.Dump(Filter{}) {
		return fmt.Sprintf("%s %d", c.State, c.Timeout/time.Second)
	}
	return "-"
}

func parseSegment(t testing.TB, text string) []byte {
	var x tcpText
	var side string
	fields := strings.Fields(text)
	if _, err := fmt.Sscan(strings.Join(fields[:5], " "), &side, &x.flags, &x.seq, &x.ack, &x.length); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	for _, o := range fields[5:] {
		if n, _ := fmt.Sscanf(o, "win=%d", &x.window); n == 1 {
			continue
		}
		if n, _ := fmt.Sscanf(o, "ws=%d", &x.scale); n != 1 {
			t.Fatalf("%q: what is %q?", text, o)
		}
	}
	if side == "c" {
		return tcpFrame(client, server, 1234, 80, x)
	}
	return tcpFrame(server, client, 80, 1234, x)
}

func TestStrictWindow(t *testing.T) {
	b := newBench(t, Config{StrictWindow: true})
	for _, line := range []string{
		"c S  1000 0 0     | new     | SYN_SENT 30",
		"s SA 5000 1001 0  | est|rpl | ESTABLISHED 60",
		"c A  1001 5001 0  | est     | ESTABLISHED 86400",
		"c A  71001 5001 1 | inv     | ESTABLISHED 86400",
	} {
		b.runLine(line)
	}
	if n := b.Stats().OutOfWindow; n != 1 {
		t.Errorf("OutOfWindow is %d, want 1", n)
	}
}

func TestSequenceCheckOff(t *testing.T) {
	b := newBench(t, Config{})
	b.SetSequenceCheck(false)
	for _, line := range []string{
		"c S  1000 0 0     | new     | SYN_SENT 30",
		"s SA 5000 1001 0  | est|rpl | ESTABLISHED 60",
		"c A  71001 5001 1 | est     | ESTABLISHED 86400",
		"s R  900000 0 0   | est|rpl | TIME_WAIT 10",
	} {
		b.runLine(line)
	}
	if n := b.Stats().OutOfWindow; n != 0 {
		t.Errorf("OutOfWindow is %d, want 0", n)
	}
}

// TestOldAcknowledgements: how far back a side may acknowledge depends on its own window
// scale, not on the other's.
func TestOldAcknowledgements(t *testing.T) {
	b := newBench(t, Config{StrictWindow: true})
	b.want(tcpFrame(client, server, 7, 80, tcpText{flags: "S", seq: 1 << 20, scale: 2}), commit, "new|trk")
	b.want(tcpFrame(server, client, 80, 7, tcpText{flags: "SA", seq: 2 << 20, ack: 1<<20 + 1, scale: 1}), lookup, "est|rpl|trk")
	for _, test := range []struct {
		back  uint32
		there string
		here  string
	}{
		{slack << 1, "est|trk", "est|rpl|trk"},
		{slack<<1 + 1, "est|trk", "inv|trk"},
		{slack << 2, "est|trk", "inv|trk"},
		{slack<<2 + 1, "inv|trk", "inv|trk"},
	} {
		b.want(tcpFrame(client, server, 7, 80, tcpText{flags: "A", seq: 1<<20 + 1, ack: 2<<20 + 1 - test.back}), lookup, test.there)
		b.want(tcpFrame(server, client, 80, 7, tcpText{flags: "A", seq: 2<<20 + 1, ack: 1<<20 + 1 - test.back}), lookup, test.here)
	}
}
