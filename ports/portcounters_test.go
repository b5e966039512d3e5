package ports

import (
	"testing"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// Every reason has a text of its own, which is the key in Stats.Reasons.
func TestReasonTexts(t *testing.T) {
	seen := map[string]Reason{}
	for r := None + 1; r < reasons; r++ {
		text := r.String()
		if text == "" {
			t.Errorf("reason %d has no text", r)
		}
		if other, twice := seen[text]; twice {
			t.Errorf("reasons %d and %d are both %q", other, r, text)
		}
		seen[text] = r
	}
}

// The four sums are the sums of their reasons, whatever is counted.
func TestStatsAddUp(t *testing.T) {
	var c Counters
	c.Received(3, 300)
	c.Sent(2, 200)
	for r := None; r < reasons; r++ {
		c.CountDrop(r, int(r)+1)
	}
	c.CountDrop(TxRingFull, 0)
	s := c.Stats()
	var all uint64
	for _, n := range s.Reasons {
		all += n
	}
	if len(s.Reasons) != int(reasons)-1 || all != s.RxDropped+s.RxErrors+s.TxDropped+s.TxErrors {
		t.Errorf("stats %+v: the reasons sum up to %d", s, all)
	}
	if want := uint64(RxRingFull+RxNoFrame+RxTooLong+RxClosed) + 4; s.RxDropped != want {
		t.Errorf("%d dropped on receive, want %d", s.RxDropped, want)
	}
	if s.RxPackets != 3 || s.RxBytes != 300 || s.TxPackets != 2 || s.TxBytes != 200 {
		t.Errorf("stats %+v: want 3 packets of 300 bytes in, 2 of 200 out", s)
	}
}

func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		length  int
		offload packet.Offload
		carries Carries
		want    Reason
	}{
		{0, packet.Offload{}, 0, TxRunt},
		{13, packet.Offload{}, 0, TxRunt},
		{14, packet.Offload{}, 0, None},
		{1518, packet.Offload{}, 0, None}, // MTU, header and a VLAN tag
		{1519, packet.Offload{}, 0, TxTooLong},
		{60, packet.Offload{ChecksumPartial: true}, 0, TxOffload},
		{9000, packet.Offload{SegmentSize: 1448}, 0, TxOffload},
		{60, packet.Offload{ChecksumPartial: true}, CarriesChecksum, None},
		{9000, packet.Offload{ChecksumPartial: true, ChecksumOffset: 16, SegmentSize: 1448}, CarriesChecksum | CarriesUDP, TxOffload},
		{9000, packet.Offload{ChecksumPartial: true, ChecksumOffset: 6, SegmentSize: 1448}, CarriesChecksum | CarriesTCP, TxOffload},
		{9000, packet.Offload{SegmentSize: 1448}, CarriesChecksum | CarriesTCP | CarriesUDP, TxOffload},
		{9000, packet.Offload{ChecksumPartial: true, ChecksumOffset: 16, SegmentSize: 1448}, CarriesTCP | CarriesChecksum, TxTooLong}, // no packet
	} {
		f := packet.NewFrame(make([]byte, 16384), nil)
		f.SetLen(c.length)
		f.Offload = c.offload
		if got := Refusal(f, 1500, c.carries); got != c.want {
			t.Errorf("%d bytes, %+v: %q, want %q", c.length, c.offload, got, c.want)
		}
	}
}

// The MTU bounds the segments, whoever cuts them.
func TestRefusalOfSegments(t *testing.T) {
	for size, want := range map[int]Reason{1448: None, 1464: None, 1465: TxTooLong} { // 1518 = 14 + 20 + 20 + 1464
		f := packettest.Undone(packettest.TCP4(packettest.Options{Payload: make([]byte, 60_000)}), size)
		if got := Refusal(f, 1500, CarriesChecksum|CarriesTCP); got != want {
			t.Errorf("segments of %d bytes: %q, want %q", size, got, want)
		}
	}
}
