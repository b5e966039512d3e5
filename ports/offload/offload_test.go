package offload

import (
	"encoding/binary"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// TestLayout: the programs find what Go writes.
func TestLayout(t *testing.T) {
	want := map[string]uintptr{
		"Generation": ofGeneration, "Conn": ofConn, "Dir": ofDir, "Out": ofOut, "Packets": ofPackets, "Bytes": ofBytes,
		"MaxLen": ofMaxLen, "Parts": ofParts, "IPSum": ofIPSum, "PseudoSum": ofPseudoSum, "PortSum": ofPortSum,
		"TTL": ofTTL, "L4": ofL4, "Checksum": ofChecksum, "Eth": ofEth, "IP": ofIP, "Ports": ofPorts, "Addrs": ofAddrs, "Hop": ofHop, "Outer": ofOuter,
	}
	all := reflect.TypeFor[ports.OffloadEntry]()
	for i := range all.NumField() {
		f := all.Field(i)
		if at, ok := want[f.Name]; f.Name != "_" && (!ok || at != f.Offset) {
			t.Errorf("%s is at %d, the programs look for it at %d", f.Name, f.Offset, at)
		}
	}
	if all.Size() != offloadSize || reflect.TypeFor[skBuff]().Size() != 192 {
		t.Errorf("an offload entry has %d bytes, struct __sk_buff %d", all.Size(), reflect.TypeFor[skBuff]().Size())
	}
}

func open(t testing.TB) (*Kernel, *Trial) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loading programs into the kernel needs root")
	}
	k, err := Open(16)
	if err != nil {
		t.Fatal(err)
	}
	trial, err := k.NewTrial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := trial.Close(); err != nil {
			t.Error(err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k, trial
}

const link, out = 7, 9

// put makes the kernel take a frame's like, to interface out.
func put(t testing.TB, k *Kernel, place uint32, frame []byte) *ports.OffloadEntry {
	t.Helper()
	s := k.OffloadEntry(place)
	s.Conn, s.Out, s.MaxLen, s.Parts = place, out, 1518, 0
	s.Generation.Store(1)
	k.Generation().Store(1)
	c := &k.Conns()[place]
	c[0].Store(1)
	for dir := range 2 {
		c[2+4*dir].Store(1000)   // next
		c[3+4*dir].Store(101000) // limit
		c[4+4*dir].Store(50000)  // window
	}
	if err := k.Put(keyOf(frame), place); err != nil {
		t.Fatal(err)
	}
	return s
}

// keyOf is a frame's key.
func keyOf(b []byte) *ports.OffloadKey {
	var k ports.OffloadKey
	binary.NativeEndian.PutUint32(k[:], link)
	copy(k[keyFrame:], b[:16])
	l := packet.ParseLayers(b)
	copy(k[keyL4:], b[l.L4:l.L4+4])
	if l.Proto == packet.ProtoTCP {
		k[keyFlags] = b[l.L4+13]
	}
	k[keyProto] = l.Proto
	if l.EtherType == packet.EtherTypeIPv4 {
		k[keyTTL] = b[22]
		copy(k[keyAddrs:], b[26:34])
	} else {
		k[keyTTL] = b[21]
		copy(k[keyAddrs:], b[22:54])
		copy(k[keyLabel:], b[16:18])
	}
	return &k
}

var plain = packettest.Options{TCPFlags: packet.TCPAck, Seq: 1000, Ack: 1000, Payload: []byte("0123456789")}

// TestTaken: each kind of frame takes its offload entry, unchanged, and is counted;
// by another interface it does not.
func TestTaken(t *testing.T) {
	k, trial := open(t)
	for i, frame := range [][]byte{packettest.TCP4(plain), packettest.TCP6(plain), packettest.UDP4(plain), packettest.UDP6(plain)} {
		s := put(t, k, uint32(i), frame)
		s.MaxLen = uint32(len(frame))
		to, sent, taken, err := trial.Received(link, frame)
		if err != nil || !taken || to != out || string(sent) != string(frame) {
			t.Errorf("frame %d: taken %v, to %d, %x, %v", i, taken, to, sent, err)
		}
		if s.Packets.Load() != 1 || s.Bytes.Load() != uint64(len(frame)) {
			t.Errorf("frame %d: counted %d packets, %d bytes", i, s.Packets.Load(), s.Bytes.Load())
		}
		if to, same, taken, err := trial.FromStack(link, frame); err != nil || !taken || to != out || string(same) != string(frame) || s.Packets.Load() != 2 {
			t.Errorf("frame %d, from the stack: taken %v, to %d, %x, %v", i, taken, to, same, err)
		}
		if _, _, taken, err := trial.FromStack(link+1, frame); taken || err != nil {
			t.Errorf("frame %d was taken from the stack by another interface: %v", i, err)
		}
		if _, _, taken, err := trial.Received(link+1, frame); taken || err != nil {
			t.Errorf("frame %d was taken by another interface: %v", i, err)
		}
	}
}

// TestTakenAfterLearnings: an entry with OffloadLearned needs Learnings, and whatever else has
// the generation of Generation.
func TestTakenAfterLearnings(t *testing.T) {
	k, trial := open(t)
	frame := packettest.TCP4(plain)
	s := put(t, k, 0, frame)
	for _, test := range []struct {
		parts               ports.OffloadParts
		own, all, learnings uint32
		want                bool
	}{
		{ports.OffloadLearned, 5, 1, 5, true},
		{ports.OffloadLearned, 5, 5, 6, false},
		{ports.OffloadLearned, 5, 0, 5, false},
		{ports.OffloadLearned, 0, 1, 0, false},
		{0, 5, 5, 6, true},
		{0, 5, 6, 5, false},
	} {
		s.Parts = test.parts
		s.Generation.Store(test.own)
		k.Generation().Store(test.all)
		k.Learnings().Store(test.learnings)
		if _, sent, taken, err := trial.Received(link, frame); err != nil || taken != test.want || taken && string(sent) != string(frame) {
			t.Errorf("%+v: taken %v, %x, %v", test, taken, sent, err)
		}
	}
}

// TestNotTaken changes one thing of a frame that would be taken, or of what there
// is for it. The key is always the changed frame's.
func TestNotTaken(t *testing.T) {
	k, trial := open(t)
	at := func(i int, v ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[i:], v); return b }
	}
	nothing := func(*ports.OffloadEntry, *ports.SharedConn) {}
	for name, test := range map[string]struct {
		frame func([]byte) []byte
		spoil func(*ports.OffloadEntry, *ports.SharedConn)
	}{
		"SYN":                 {at(47, packet.TCPSyn|packet.TCPAck), nothing},
		"FIN":                 {at(47, packet.TCPFin|packet.TCPAck), nothing},
		"RST":                 {at(47, packet.TCPRst|packet.TCPAck), nothing},
		"URG":                 {at(47, packet.TCPUrg|packet.TCPAck), nothing},
		"no ACK":              {at(47, packet.TCPPsh), nothing},
		"reserved bits":       {at(46, 0x51), nothing},
		"data offset 4":       {at(46, 0x40), nothing},
		"data offset 15":      {at(46, 0xf0), nothing},
		"another protocol":    {at(23, packet.ProtoSCTP), nothing},
		"IPv4 options":        {at(14, 0x46), nothing},
		"version 6":           {at(14, 0x65), nothing},
		"more fragments":      {at(20, 0x20), nothing},
		"a later fragment":    {at(21, 1), nothing},
		"IPv4 checksum":       {at(24, 0), nothing},
		"total length short":  {at(16, 0, 39), nothing},
		"total length long":   {at(16, 1), nothing},
		"VLAN":                {at(12, 0x81, 0), nothing},
		"cut":                 {func(b []byte) []byte { return b[:53] }, nothing},
		"sequence behind":     {at(38, 0xff, 0xff, 0, 0), nothing},
		"sequence ahead":      {at(38, 0, 2, 0, 0), nothing},
		"end ahead":           {at(38, 0, 1, 0x8a, 0x84), nothing}, // 4 before the limit
		"far acknowledgement": {at(42, 0, 2, 0, 0), nothing},
		"old acknowledgement": {at(42, 0xff, 0xfe, 0, 0), nothing},
		"too long":            {at(0), func(s *ports.OffloadEntry, _ *ports.SharedConn) { s.MaxLen = 63 }},
		"old generation":      {at(0), func(s *ports.OffloadEntry, _ *ports.SharedConn) { s.Generation.Store(2) }},
		"no generation":       {at(0), func(s *ports.OffloadEntry, _ *ports.SharedConn) { s.Generation.Store(0); k.Generation().Store(0) }},
		"old learnings": {at(0), func(s *ports.OffloadEntry, _ *ports.SharedConn) {
			s.Parts = ports.OffloadLearned
			k.Learnings().Store(2)
		}},
		"connection is back": {at(0), func(_ *ports.OffloadEntry, c *ports.SharedConn) { c[0].Store(0) }},
		"a sum of zero":      {at(50, 0, 0), func(s *ports.OffloadEntry, _ *ports.SharedConn) { s.Parts = ports.OffloadEth }},
		"a sum of ones":      {at(50, 0xff, 0xff), func(s *ports.OffloadEntry, _ *ports.SharedConn) { s.Parts = ports.OffloadEth }},
		"IPv4 checksum of ones": {func(b []byte) []byte {
			copy(b[18:], b[24:26]) // the Identification makes the sum all ones
			b[24], b[25] = 0xff, 0xff
			return b
		}, func(s *ports.OffloadEntry, _ *ports.SharedConn) { s.Parts = ports.OffloadEth }},
		"connection nowhere": {at(0), func(s *ports.OffloadEntry, _ *ports.SharedConn) { s.Conn = 16 }},
	} {
		t.Run(name, func(t *testing.T) {
			base := packettest.TCP4(plain)
			frame := test.frame(append([]byte(nil), base...))
			if !strings.HasPrefix(name, "IPv4 checksum") {
				resum(frame)
			}
			key := *keyOf(base)
			copy(key[keyFrame:], frame[:16])
			key[keyProto], key[keyFlags] = frame[23], frame[47]
			s := put(t, k, 0, base)
			if err := k.Put(&key, 0); err != nil {
				t.Fatal(err)
			}
			test.spoil(s, &k.Conns()[0])
			before := s.Packets.Load()
			if _, _, taken, err := trial.Received(link, frame); taken || err != nil || s.Packets.Load() != before {
				t.Errorf("taken %v, counted %d, %v", taken, s.Packets.Load()-before, err)
			}
			if _, _, taken, err := trial.FromStack(link, frame); taken || err != nil || s.Packets.Load() != before {
				t.Errorf("from the stack: taken %v, counted %d, %v", taken, s.Packets.Load()-before, err)
			}
		})
	}
}

// resum makes an IPv4 header's checksum right again.
func resum(b []byte) {
	if len(b) >= 34 {
		binary.BigEndian.PutUint16(b[24:], 0)
		binary.BigEndian.PutUint16(b[24:], packet.Checksum(b[14:34], 0))
	}
}

// TestSettle: a processor that is between the two programs is waited for, however
// long; others are not.
func TestSettle(t *testing.T) {
	k, trial := open(t)
	if _, _, _, err := trial.Received(link, packettest.TCP4(plain)); err != nil {
		t.Fatal(err)
	}
	for i := range k.controlAt[1:] {
		if run := k.controlAt[1+i].run.Load(); run&1 != 0 {
			t.Errorf("the count of processor %d is %d after a packet that took nothing", i, run)
		}
	}
	k.Settle()
	k.controlAt[1].run.Store(5) // another program took the packet in between
	k.Settle()
	frame := packettest.UDP4(plain)
	put(t, k, 0, frame)
	if _, _, taken, err := trial.Received(link, frame); !taken || err != nil {
		t.Errorf("after that a packet was taken: %v, %v", taken, err)
	}
	if run := k.controlAt[1].run.Load(); run&1 != 0 && run != 5 {
		t.Errorf("the count is %d after a packet that was sent", run)
	}
}

// FuzzFilter: whatever comes in, a frame is taken only by its own key, and what is
// sent has its length. The gateway's program takes what the filter takes, and sends the same.
func FuzzFilter(f *testing.F) {
	k, trial := open(f)
	base := packettest.TCP4(plain)
	s := put(f, k, 0, base)
	f.Add(base)
	f.Add(packettest.UDP6(plain))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < 54 || len(frame) > 2000 {
			return // the kernel runs no program for a test over a part of an IP header
		}
		put(t, k, 0, base)
		before := s.Packets.Load()
		_, sent, taken, err := trial.Received(link, frame)
		if err != nil {
			t.Fatal(err)
		}
		if taken != (s.Packets.Load() == before+1) || taken && (*keyOf(frame) != *keyOf(base) || len(sent) != len(frame)) {
			t.Errorf("taken %v, counted %d, sent %x", taken, s.Packets.Load()-before, sent)
		}
		put(t, k, 0, base)
		if _, same, also, err := trial.FromStack(link, frame); err != nil || also != taken || string(same) != string(sent) {
			t.Errorf("from the stack: taken %v, not %v, %v, sent\n%x\n%x", also, taken, err, same, sent)
		}
	})
}

// BenchmarkFilter is the filter over the same frame again and again: one that takes
// an offload entry, one like it that nobody has asked for, and one while there are none,
// which shows what the kernel's way of running it costs by itself.
func BenchmarkFilter(b *testing.B) {
	k, trial := open(b)
	frame := packettest.TCP4(plain)
	put(b, k, 0, frame)
	other := plain
	other.SrcPort = 999
	for name, test := range map[string]struct {
		frame      []byte
		generation uint32
	}{"taken": {frame, 1}, "not taken": {packettest.TCP4(other), 1}, "nothing to be taken": {frame, 0}} {
		b.Run(name, func(b *testing.B) {
			k.Generation().Store(test.generation)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			o := &ebpf.RunOptions{Data: test.frame, Context: skBuff{Mark: link}, Repeat: uint32(b.N)}
			before := threadTime(b)
			if _, err := trial.filter.Run(o); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(threadTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// threadTime is the processor time of the calling thread, in nanoseconds.
func threadTime(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
