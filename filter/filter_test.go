package filter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"golang.org/x/net/bpf"
)

// compile is a filter that has to be one.
func compile(t testing.TB, expressions ...string) *Filter {
	t.Helper()
	f, err := Compile(expressions...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// frames are frames by name.
func frames() map[string][]byte {
	tagged := func(id uint16, b []byte) []byte {
		f := packet.NewFrame(make([]byte, 2048), nil)
		f.SetBytes(b)
		packet.PushVLAN(f, packet.EtherTypeVLAN, id)
		return f.Bytes()
	}
	syn := pt.TCP4(pt.Options{SrcPort: 40000, DstPort: 80, TCPFlags: packet.TCPSyn})
	return map[string][]byte{
		"syn":    syn,
		"ack":    pt.TCP4(pt.Options{SrcPort: 40000, DstPort: 80, TCPFlags: packet.TCPAck}),
		"dns":    pt.UDP4(pt.Options{SrcPort: 5353, DstPort: 53}),
		"syn6":   pt.TCP6(pt.Options{SrcPort: 40000, DstPort: 443, TCPFlags: packet.TCPSyn}),
		"later":  pt.UDP4(pt.Options{SrcPort: 5353, DstPort: 53, FlagsOffset: 185}),
		"tagged": tagged(7, syn),
		"arp":    append(append(make([]byte, 0, 42), 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6), 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9),
	}
}

// TestMatch asks filters about frames that they want, and about all others.
func TestMatch(t *testing.T) {
	all := frames()
	for expression, want := range map[string]string{
		"":                                 "syn ack dns syn6 later tagged arp",
		"tcp":                              "syn ack syn6",
		"ip":                               "syn ack dns later",
		"ip6":                              "syn6",
		"arp":                              "arp",
		"udp port 53":                      "dns",
		"port 80 or 443":                   "syn ack syn6",
		"tcp port (80 or 443) and not ip6": "syn ack",
		"src port 80":                      "",
		"src or dst port 80":               "syn ack",
		"portrange 50-60":                  "dns",
		"host 10.0.0.1":                    "syn ack dns later arp",
		"dst host 10.0.0.9":                "arp",
		"10.0.0.1 and 10.0.0.2":            "syn ack dns later",
		"src and dst net 10":               "syn ack dns later arp",
		"net 10.0.0.0/30":                  "syn ack dns later arp",
		"ip src 10.0.0.1":                  "syn ack dns later",
		"ip6 host fd00::1":                 "syn6",
		"vlan":                             "tagged",
		"vlan 7 and tcp dst port 80":       "tagged",
		"vlan 8":                           "",
		"(vlan 7 and tcp) or arp":          "tagged",
		"ether broadcast":                  "arp",
		"ether proto 0x806":                "arp",
		"ip proto 17 or ip6 proto tcp":     "dns syn6 later",
		"tcp[tcpflags] & (tcp-syn|tcp-ack) = tcp-syn": "syn",
		"tcp[13] == 16":        "ack",
		"ip[6:2] & 0x1fff > 0": "later",
		"less 50":              "dns later arp",
		"not (tcp or udp)":     "tagged arp",
		"! tcp && ! udp":       "tagged arp",
		"tcp or udp and ip6":   "syn6", // from left to right
	} {
		f := compile(t, expression)
		for name, b := range all {
			if expects := strings.Contains(" "+want+" ", " "+name+" "); f.Match(b) != expects {
				t.Errorf("%q: %s is wanted: %v", expression, name, !expects)
			}
		}
	}
}

// TestAll needs every expression to hold.
func TestAll(t *testing.T) {
	f := compile(t, "src host 10.0.0.1", "", "port 80 or vlan 7", "not arp")
	for name, b := range frames() {
		if want := name == "syn" || name == "ack"; f.Match(b) != want {
			t.Errorf("%s is wanted: %v", name, !want)
		}
	}
}

// TestErrors says what is wrong, and where.
func TestErrors(t *testing.T) {
	for expression, want := range map[string]string{
		"host":                        `column 5: expected an address, not ""`,
		"host web-1":                  `column 6: expected an address, not "web-1"; names are not looked up`,
		"port http":                   "column 6: expected a port from 0 to 65535, not \"http\"",
		"port 70000":                  "column 6: expected a port",
		"portrange 1-x":               "column 11: expected a port from 0 to 65535, or two with - between them",
		"tcp and":                     "column 8: expected an expression",
		"tcp tcp":                     "column 5: expected port or portrange behind tcp",
		"tcp 80":                      "column 5: expected port or portrange behind tcp",
		"(tcp":                        `column 5: expected ")"`,
		"tcp)":                        `column 4: expected and, or, or the end, not ")"`,
		"net 300":                     "column 5: expected a network",
		"ip host fd00::1":             "column 9: ip has no IPv6 addresses",
		"arp port 80":                 "column 10: arp has no ports",
		"ether host 10.0.0.1":         "column 12: expected an Ethernet address",
		"ether":                       "column 6: expected host",
		"vlan 5000":                   "column 6: expected a number up to 4095",
		"tcp[13":                      `column 7: expected "]"`,
		"tcp[13] & 2":                 `column 12: expected &, =`,
		"foo[0] = 1":                  `column 1: there are no bytes of "foo"`,
		"tcp[0:3] = 1":                "expected 1, 2 or 4 bytes",
		"gateway 10.0.0.1":            `column 1: expected an address, not "gateway"`,
		"src proto 6":                 "column 11: proto has no direction",
		strings.Repeat("(", 101):      "parentheses",
		strings.Repeat("x", 17<<10):   "16384 bytes at most",
		"host fe80::1%eth0":           "expected",
		"tcp port 80 port 443":        "column 13: expected and, or",
		strings.Repeat("! ", 101):     "negations",
		"ip broadcast":                "there is no ip broadcast here",
		manyHosts(200) + " or host 1": `expected an address, not "1"`,
		manyHosts(300):                "instructions, want 4096 at most",
	} {
		_, err := Compile(expression)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %.300v, want %q", expression, err, want)
		}
	}
}

// manyHosts is a long expression.
func manyHosts(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("host fd00::%x", i+1))
	}
	return strings.Join(all, " or ")
}

// TestLongJumps compiles an expression whose jumps are longer than conditional
// jumps can be.
func TestLongJumps(t *testing.T) {
	f := compile(t, manyHosts(150)+" or port 80")
	for i, want := range map[int]bool{1: true, 2: true, 77: true, 150: true, 151: false} {
		b := pt.UDP6(pt.Options{Src: pt.Addr(fmt.Sprintf("fd00::%x", i)), Dst: pt.Addr("fd01::1"), SrcPort: 1, DstPort: 2})
		if f.Match(b) != want {
			t.Errorf("host %d is wanted: %v", i, !want)
		}
	}
	if !f.Match(frames()["syn"]) {
		t.Error("the last test is not reached")
	}
}

// TestDeep tells filters that ask for more than a connection has.
func TestDeep(t *testing.T) {
	for expression, want := range map[string]bool{
		"tcp port 80 and host 10.0.0.1": false, "tcp[tcpflags] & tcp-syn != 0": false, "less 100": true, "udp[8:4] = 7": true, "": false,
	} {
		if got := compile(t, expression).Deep(); got != want {
			t.Errorf("%q: %v", expression, got)
		}
	}
}

// TestMatchAllocatesNothing asks a filter about a frame.
func TestMatchAllocatesNothing(t *testing.T) {
	f, b := compile(t, "host 10.0.0.1 and tcp port 80"), frames()["syn"]
	if n := testing.AllocsPerRun(100, func() { f.Match(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCompile makes programs of anything; those that come of it end, on any
// frame.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{"tcp port (80 or 443) and not vlan 7", "ip[6:2] & 0x1fff != 0", "src and dst net fd00::/8", `ip proto \tcp`, "((", "ether src 02:00:00:00:00:01"} {
		f.Add(s, []byte("some bytes of a frame that mean nothing much at all"))
	}
	f.Fuzz(func(t *testing.T, s string, b []byte) {
		c, err := Compile(s)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Column < 1 {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		sameAsProgram(t, c, s, b)
		n, err := Compile("not (" + s + ")")
		if err == nil && len(b) > 2000 && strings.TrimSpace(s) != "" && n.Match(b) == c.Match(b) {
			t.Errorf("%q and its contrary agree", s)
		}
	})
}

// sameAsProgram has a filter's checks say of a frame what its program says, in the
// machine that interprets such programs.
func sameAsProgram(t *testing.T, f *Filter, expression string, frame []byte) {
	t.Helper()
	vm, err := bpf.NewVM(f.program)
	if err != nil {
		t.Fatalf("%q: %v", expression, err)
	}
	n, err := vm.Run(frame)
	if err != nil {
		t.Fatalf("%q: %v", expression, err)
	}
	if want := n != 0; f.Match(frame) != want {
		t.Errorf("%q: %x is wanted by the program: %v", expression, frame, want)
	}
}

// TestMatchIsTheProgram asks random filters about random frames, cut anywhere.
func TestMatchIsTheProgram(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 500 {
		expression := randomExpression(r, r.IntN(5))
		f := compile(t, expression)
		for range 40 {
			b := randomFrame(r)
			if r.IntN(3) == 0 {
				b = b[:r.IntN(len(b)+1)]
			}
			if len(b) > 14 {
				b[14] = b[14]&0xf0 | byte(r.IntN(16)) // IPv4 options
			}
			sameAsProgram(t, f, expression, b)
		}
	}
}

// TestTypeIsReadOnce counts the checks that a frame meets which is not wanted: its
// type and its protocol.
func TestTypeIsReadOnce(t *testing.T) {
	f := compile(t, "tcp port 80 and host 10.0.0.77")
	dns := frames()["dns"]
	for at, n := f.first, 0; ; n++ {
		if at < 0 {
			if n != 2 || at != unwanted {
				t.Errorf("UDP meets %d checks of a filter for TCP", n)
			}
			return
		}
		c := &f.checks[at]
		v, _ := c.load(dns)
		if at = c.no; v&c.mask-c.low <= c.span {
			at = c.yes
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	f, frame := compile(b, "host 10.0.0.77 and tcp port 80"), frames()["syn"]
	for b.Loop() {
		f.Match(frame)
	}
}

// randomExpression is one of a few thousand million.
func randomExpression(r *rand.Rand, depth int) string {
	pick := func(v ...string) string { return v[r.IntN(len(v))] }
	if depth > 0 && r.IntN(3) > 0 {
		a, b := randomExpression(r, depth-1), randomExpression(r, depth-1)
		return fmt.Sprintf(pick("(%s) and (%s)", "(%s) or (%s)", "not (%s) and (%s)", "(%s) and not (%s)"), a, b)
	}
	dir := pick("", "", "src ", "dst ", "src or dst ", "src and dst ")
	addr := pick("10.0.0.1", "10.0.0.2", "10.0.0.9", "fd00::1", "fd00::2")
	switch r.IntN(8) {
	case 0:
		return pick("tcp", "udp", "icmp", "icmp6", "arp", "ip", "ip6", "sctp", "igmp")
	case 1:
		return dir + "host " + addr
	case 2:
		return dir + "net " + pick("10.0.0.0/30", "10.0.0.0/8", "fd00::/16", "fd00::/96", "10.0.0.2/32")
	case 3:
		return pick("", "tcp ", "udp ", "sctp ") + dir + "port " + pick("80", "53", "1000", "443")
	case 4:
		return pick("", "tcp ", "udp ") + dir + "portrange " + pick("50-90", "1-1000", "900-2000")
	case 5:
		return pick("ip proto 6", "ip6 proto 17", "proto 17", "ether proto 0x86dd", "ip proto 1", "ip multicast", "ether multicast", "broadcast")
	case 6:
		return "ether " + strings.TrimSpace(pick("src ", "dst ", "host ")) + " " + pick("02:00:00:00:00:01", "02:00:00:00:00:02", "ff:ff:ff:ff:ff:ff")
	}
	return pick("ip[6:2] & 0x1fff > 0", "tcp[0:4] >= 0x500050", "udp[0:2] < 100", "ether[12:2] != 0x800", "ip[16:4] <= 0xa000001", "tcp[tcpflags] & tcp-syn != 0", "ip[8] > 10", "less 60", "greater 70", "ip6[6] = 6", "udp[2:2] = 53", "ether[0] & 1 = 0")
}
