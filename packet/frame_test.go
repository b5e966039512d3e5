package packet_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

func frame(b []byte) *packet.Frame {
	f := packet.NewFrame(make([]byte, packet.Headroom+len(b)+32), nil)
	f.SetBytes(b)
	return f
}

func TestFrameBounds(t *testing.T) {
	f := frame([]byte("0123456789"))
	if f.Len() != 10 || f.Headroom() != packet.Headroom || f.Tailroom() != 32 {
		t.Fatalf("len %d, headroom %d, tailroom %d", f.Len(), f.Headroom(), f.Tailroom())
	}
	if f.TrimFront(11) || f.TrimFront(-1) || f.SetLen(43) || f.SetBounds(200, 1) || f.SetBytes(make([]byte, 43)) {
		t.Error("a change beyond the buffer was accepted")
	}
	if f.Prepend(packet.Headroom+1) != nil {
		t.Error("Prepend beyond the headroom was accepted")
	}
	if !f.TrimFront(4) || !f.SetLen(3) || string(f.Bytes()) != "456" {
		t.Errorf("trimmed to %q", f.Bytes())
	}
	copy(f.Prepend(2), "ab")
	if string(f.Bytes()) != "ab456" {
		t.Errorf("after Prepend %q", f.Bytes())
	}
	if b := f.Bytes(); cap(b) != len(b) {
		t.Errorf("the slice reaches %d bytes behind the frame", cap(b)-len(b))
	}
}

func TestCopyFrom(t *testing.T) {
	g := frame([]byte("payload"))
	g.Offload.SegmentSize, g.Tunnel.ID = 1400, 7
	f := packet.NewFrame(make([]byte, packet.Headroom+7), nil)
	if !f.CopyFrom(g) || string(f.Bytes()) != "payload" || f.Offload != g.Offload || f.Tunnel != g.Tunnel {
		t.Errorf("copied %q, %+v, %+v", f.Bytes(), f.Offload, f.Tunnel)
	}
	if small := packet.NewFrame(make([]byte, packet.Headroom+6), nil); small.CopyFrom(g) {
		t.Error("a copy into a shorter buffer was accepted")
	}
}

func TestVLANPushPop(t *testing.T) {
	plain := pt.TCP4(pt.Options{})
	f := frame(plain)
	f.Offload = packet.Offload{ChecksumPartial: true, ChecksumStart: 34, ChecksumOffset: 16}
	if !packet.PushVLAN(f, packet.EtherTypeVLAN, 0x3005) {
		t.Fatal("PushVLAN failed")
	}
	if want := splice(plain, 12, 0, 0x81, 0, 0x20, 5); !bytes.Equal(f.Bytes(), want) {
		t.Errorf("pushed\n got %x\nwant %x", f.Bytes(), want)
	}
	if f.Offload.ChecksumStart != 38 {
		t.Errorf("ChecksumStart %d behind a tag, want 38", f.Offload.ChecksumStart)
	}
	if !packet.PushVLAN(f, packet.EtherTypeQinQ, 9) {
		t.Fatal("second PushVLAN failed")
	}
	if want := splice(plain, 12, 0, 0x88, 0xa8, 0, 9, 0x81, 0, 0x20, 5); !bytes.Equal(f.Bytes(), want) {
		t.Errorf("pushed twice\n got %x\nwant %x", f.Bytes(), want)
	}
	for i, want := range []bool{true, true, false} {
		if packet.PopVLAN(f) != want {
			t.Errorf("pop %d did the opposite of %v; want two tags and no third", i, want)
		}
	}
	if !bytes.Equal(f.Bytes(), plain) || f.Offload.ChecksumStart != 34 {
		t.Errorf("popped\n got %x\nwant %x", f.Bytes(), plain)
	}
}

func TestVLANRefused(t *testing.T) {
	full := packet.NewFrame(pt.TCP4(pt.Options{}), nil)
	full.SetBounds(0, len(full.Buffer()))
	if packet.PushVLAN(full, packet.EtherTypeVLAN, 1) {
		t.Error("pushed without headroom")
	}
	if packet.PushVLAN(frame(make([]byte, 13)), packet.EtherTypeVLAN, 1) {
		t.Error("pushed on a runt")
	}
	if packet.PopVLAN(frame(pt.TCP4(pt.Options{VLAN: 5})[:17])) {
		t.Error("popped a tag that is cut short")
	}
}

func TestPool(t *testing.T) {
	p := packet.NewPool(4, 2048)
	batch := make([]*packet.Frame, 6)
	if n := p.Get(batch); n != 4 {
		t.Fatalf("Get = %d of 4", n)
	}
	seen := map[*packet.Frame]bool{}
	for _, f := range batch[:4] {
		if seen[f] || f.Len() != 0 || f.Headroom() != packet.Headroom || len(f.Buffer()) != 2048 {
			t.Errorf("frame %d: twice, or not empty", f.Index)
		}
		seen[f] = true
		f.SetBytes([]byte("old"))
		f.Tunnel.ID = 5
	}
	packet.Release(batch[:4])
	if p.Free() != 4 {
		t.Errorf("%d frames free after Release", p.Free())
	}
	if p.Get(batch[:1]) != 1 || batch[0].Len() != 0 || batch[0].Tunnel.ID != 0 {
		t.Error("a frame from the pool remembers its last packet")
	}
}

func TestPoolReleasedTwice(t *testing.T) {
	p := packet.NewPool(2, 256)
	batch := make([]*packet.Frame, 2)
	p.Get(batch)
	packet.Release(batch)
	defer func() {
		if recover() == nil {
			t.Error("a second Release went unnoticed")
		}
	}()
	packet.Release(batch[:1])
}

func TestPoolConcurrently(t *testing.T) {
	p := packet.NewPool(64, 256)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			batch := make([]*packet.Frame, 16)
			for range 1000 {
				n := p.Get(batch)
				for _, f := range batch[:n] {
					f.SetBytes([]byte{1, 2, 3})
				}
				packet.Release(batch[:n])
			}
		})
	}
	wg.Wait()
	if p.Free() != 64 {
		t.Errorf("%d of 64 frames came back", p.Free())
	}
}

func TestReleaseByPool(t *testing.T) {
	a, b := packet.NewPool(3, 256), packet.NewPool(3, 256)
	var fa, fb [3]*packet.Frame
	a.Get(fa[:])
	b.Get(fb[:])
	packet.Release([]*packet.Frame{fa[0], fa[1], fb[0], frame(nil), fb[1], fa[2], fb[2]})
	if a.Free() != 3 || b.Free() != 3 {
		t.Errorf("free: %d and %d, want 3 and 3", a.Free(), b.Free())
	}
}
