package pcap

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

var start = time.Unix(1_700_000_000, 123_456_789).UTC()

// content is packet i of the tests: an Ethernet frame of 60+i bytes.
func content(i int) []byte {
	b := make([]byte, 60+i)
	b[12], b[13], b[14] = 0x88, 0xb5, byte(i)
	return b
}

// classic is a pcap file of three packets, one second apart, written by hand
// (libpcap's file format: 24 bytes of header, 16 before each packet).
func classic(order binary.AppendByteOrder, magic uint32, fraction uint32) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	for _, word := range []uint32{0, 0, 65535, 1} {
		b = order.AppendUint32(b, word)
	}
	for i := range 3 {
		p := content(i)
		for _, word := range []uint32{uint32(start.Unix()) + uint32(i), fraction, uint32(len(p)), uint32(len(p))} {
			b = order.AppendUint32(b, word)
		}
		b = append(b, p...)
	}
	return b
}

// ng is the same as a pcapng file.
func ng(t testing.TB) []byte {
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		p := content(i)
		at := start.Add(time.Duration(i) * time.Second)
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(p), Length: len(p)}, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zipped is a file that gzip has compressed.
func zipped(t testing.TB, file []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(file)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// block is a block of pcapng in big-endian order. Words are 32 bits.
func block(kind uint32, words ...uint32) []byte {
	length := uint32(12 + 4*len(words))
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, kind), length)
	for _, word := range words {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return binary.BigEndian.AppendUint32(b, length)
}

// section is a section header of pcapng, of unknown length.
var section = block(blockSection, sectionMagic, 1<<16, ^uint32(0), ^uint32(0))

// TestNGTimes reads times in other units than nanoseconds, and blocks that other programs write.
func TestNGTimes(t *testing.T) {
	const ethernet, data = linkEthernet << 16, 0xaabbccdd
	unit := func(of uint32) []byte { // an interface with if_tsresol
		return block(blockInterface, ethernet, 0, optionTimeUnit<<16|1, of<<24, 0)
	}
	enhanced := func(high, low uint32) []byte { return block(blockPacket, 0, high, low, 4, 60, data) }
	zero := block(blockInterface, ethernet, 0, optionTimeZero<<16|8, 0, 100, 0)
	for _, c := range []struct {
		name   string
		blocks [][]byte
		want   time.Time
		length int
	}{
		{"microseconds without the option", [][]byte{section, block(blockInterface, ethernet, 0), enhanced(0, 1_500_000)}, time.Unix(1, 500_000_000), 60},
		{"seconds", [][]byte{section, unit(0), enhanced(0, 7)}, time.Unix(7, 0), 60},
		{"picoseconds", [][]byte{section, unit(12), enhanced(232, 3_567_587_328+1999)}, time.Unix(1, 1), 60},
		{"10^-19 s", [][]byte{section, unit(19), enhanced(1<<31, 0)}, time.Unix(0, 922_337_203), 60},
		{"half seconds", [][]byte{section, unit(0x81), enhanced(0, 3)}, time.Unix(1, 500_000_000), 60},
		{"2^-63 s", [][]byte{section, unit(0x80 | 63), enhanced(3<<30, 0)}, time.Unix(1, 500_000_000), 60},
		{"an offset", [][]byte{section, zero, enhanced(0, 1)}, time.Unix(100, 1000), 60},
		{"a simple packet", [][]byte{section, block(blockInterface, ethernet, 4), block(blockSimple, 1500, data)}, time.Time{}, 1500},
		{"other blocks", [][]byte{section, block(99, 1, 2), unit(6), block(5, 1), enhanced(0, 0)}, time.Unix(0, 0), 60},
		{"two sections", [][]byte{section, unit(0), section, unit(0x81), enhanced(0, 3)}, time.Unix(1, 500_000_000), 60},
	} {
		r, err := NewReader("in.pcapng", bytes.NewReader(bytes.Join(c.blocks, nil)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		p, err := r.Next()
		if err != nil || !p.Time.Equal(c.want) || p.Length != c.length || !bytes.Equal(p.Bytes, []byte{0xaa, 0xbb, 0xcc, 0xdd}) {
			t.Errorf("%s: %+v, %v; want %v, %d bytes", c.name, p, err, c.want, c.length)
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: %v behind the packet, want EOF", c.name, err)
		}
	}
}

// TestNGRefusals has the place of what cannot be read.
func TestNGRefusals(t *testing.T) {
	eth := block(blockInterface, linkEthernet<<16, 0)
	for want, blocks := range map[string][][]byte{
		"no capture: a packet comes before the first interface":                           {section, block(blockPacket, 0, 0, 0, 0, 0)},
		"no capture: link type 105: only Ethernet (1) can be read":                        {section, block(blockInterface, 105<<16, 0)},
		"no capture: the unit of time of interface 0 is 0x14: want":                       {section, block(blockInterface, 1<<16, 0, optionTimeUnit<<16|1, 20<<24, 0)},
		"no capture: the byte order of a section is 01020304":                             {block(blockSection, 0x01020304)},
		"no capture: an interface of 4 bytes: want at least 8":                            {section, block(blockInterface, 1<<16)},
		"packet 1: it is of interface 1, and the section has 1":                           {section, eth, block(blockPacket, 1, 0, 0, 0, 0)},
		"packet 1: 9 bytes were captured of it, and the block holds 4":                    {section, eth, block(blockPacket, 0, 0, 0, 9, 9, 0)},
		"packet 1: interface 1: link type 0: only Ethernet":                               {section, eth, block(blockInterface, 0, 0), block(blockPacket, 1, 0, 0, 0, 0)},
		"packet 1: a block of 4 bytes: want at least 20":                                  {section, eth, block(blockPacket, 0)},
		"packet 1: a block of 13 bytes: want at least 12":                                 {section, eth, {0, 0, 0, 99, 0, 0, 0, 13}},
		"packet 1: a block of 4294967280 bytes: at most":                                  {section, eth, {0, 0, 0, blockPacket, 0xff, 0xff, 0xff, 0xfc}},
		"packet 1: a simple packet block of 0 bytes in a section with 1 interfaces: want": {section, eth, block(blockSimple)},
	} {
		r, err := NewReader("in.pcapng", bytes.NewReader(bytes.Join(blocks, nil)))
		if err == nil {
			_, err = r.Next()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestWriterIsRead has gopacket read what is written.
func TestWriterIsRead(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter("out.pcap", &b)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(start, content(0)), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	got, about, err := r.ReadPacketData()
	if err != nil || !bytes.Equal(got, content(0)) || !about.Timestamp.Equal(start) || about.Length != 60 || r.LinkType() != layers.LinkTypeEthernet || r.Snaplen() != snapLength {
		t.Errorf("%x, %+v, %v, %v of at most %d bytes", got, about, err, r.LinkType(), r.Snaplen())
	}
	if err := w.Write(start, make([]byte, snapLength+1)); err == nil || !strings.Contains(err.Error(), "packet 2 has 262145 bytes: at most 262144") {
		t.Errorf("a packet that is too long: %v", err)
	}
}

func TestReadsAllFormats(t *testing.T) {
	for _, c := range []struct {
		name     string
		file     []byte
		fraction int
	}{
		{"microseconds, little endian", classic(binary.LittleEndian, 0xa1b2c3d4, 123_456), 123_456_000},
		{"microseconds, big endian", classic(binary.BigEndian, 0xa1b2c3d4, 123_456), 123_456_000},
		{"nanoseconds, little endian", classic(binary.LittleEndian, 0xa1b23c4d, 123_456_789), 123_456_789},
		{"nanoseconds, big endian", classic(binary.BigEndian, 0xa1b23c4d, 123_456_789), 123_456_789},
		{"pcapng", ng(t), 123_456_789},
		{"pcap, gzip", zipped(t, classic(binary.LittleEndian, 0xa1b23c4d, 123_456_789)), 123_456_789},
		{"pcapng, gzip", zipped(t, ng(t)), 123_456_789},
	} {
		r, err := NewReader("in.pcap", bytes.NewReader(c.file))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i := range 3 {
			p, err := r.Next()
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			at := time.Unix(start.Unix()+int64(i), int64(c.fraction))
			if p.Number != i+1 || !p.Time.Equal(at) || !bytes.Equal(p.Bytes, content(i)) || p.Length != 60+i {
				t.Errorf("%s: packet %d at %v is %d bytes of %d, want packet %d at %v",
					c.name, p.Number, p.Time, len(p.Bytes), p.Length, i+1, at)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: %v after the last packet, want EOF", c.name, err)
		}
	}
}

func TestReaderRefusals(t *testing.T) {
	whole := classic(binary.LittleEndian, 0xa1b2c3d4, 0)
	wifi := bytes.Clone(whole)
	wifi[20] = 105
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "in.pcap: no capture: unexpected EOF"},
		{"text", []byte("cookie=0x1, table=Classifier, priority=200"), "in.pcap: no capture: it begins with 636f6f6b: want a file of pcap or pcapng"},
		{"half a header", whole[:20], "in.pcap: no capture: unexpected EOF"},
		{"wireless", wifi, "in.pcap: no capture: link type 105: only Ethernet (1) can be read"},
	} {
		_, err := NewReader("in.pcap", bytes.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nosuch.pcap")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A file cut anywhere yields the whole packets before the cut, then an error
// with the packet's number; or a clean end when it was cut between packets.
func TestTruncatedFile(t *testing.T) {
	for name, whole := range map[string][]byte{"pcap": classic(binary.LittleEndian, 0xa1b2c3d4, 0), "pcapng": ng(t)} {
		for cut := range len(whole) {
			r, err := NewReader("in.pcap", bytes.NewReader(whole[:cut]))
			if err != nil {
				continue // within the header
			}
			n := 0
			for _, err = r.Next(); err == nil; _, err = r.Next() {
				n++
			}
			if n > 2 {
				t.Fatalf("%s: %d packets in %d bytes of %d", name, n, cut, len(whole))
			}
			want := []string{"in.pcap: packet 1: ", "in.pcap: packet 2: ", "in.pcap: packet 3: "}[n]
			if err != io.EOF && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s cut at %d: %v, want %q", name, cut, err, want)
			}
		}
		r, err := NewReader("in.pcap", bytes.NewReader(whole[:len(whole)-30]))
		if err != nil {
			t.Fatal(err)
		}
		r.Next()
		r.Next()
		if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "the file ends within it") {
			t.Errorf("%s: %v, want the truncation told", name, err)
		}
	}
}

// A file holds what was written to it, with its times, and says of a packet that was
// cut when it was captured how long it was.
func TestWriterWritesWhatWasRead(t *testing.T) {
	cut := classic(binary.LittleEndian, 0xa1b23c4d, 123_456_789)
	binary.LittleEndian.PutUint32(cut[24+12:], 1500) // the first packet's length on the wire
	in, err := NewReader("in.pcap", bytes.NewReader(cut))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.pcap")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, length := range []int{1500, 61, 62} {
		p, err := in.Next()
		if err != nil || p.Length != length {
			t.Fatalf("packet %d: %v, of %d bytes, want %d", i+1, err, p.Length, length)
		}
		if err := w.Write(p.Time, p.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for i := range 3 {
		got, err := again.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !got.Time.Equal(start.Add(time.Duration(i)*time.Second)) || !bytes.Equal(got.Bytes, content(i)) {
			t.Errorf("packet %d was written at %v as %x", i+1, got.Time, got.Bytes)
		}
	}
}

// Whatever a file holds, reading it ends, and the packets are numbered.
func FuzzReader(f *testing.F) {
	f.Add(classic(binary.LittleEndian, 0xa1b2c3d4, 5))
	f.Add(classic(binary.BigEndian, 0xa1b23c4d, 5))
	f.Add(ng(f))
	f.Add(zipped(f, ng(f)))
	f.Add(slices.Concat(section, block(blockInterface, 1<<16, 0), block(blockSimple, 4, 0)))
	f.Add([]byte(pcapngMagic))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := NewReader("in.pcap", bytes.NewReader(file))
		if err != nil {
			return
		}
		for n := 1; ; n++ {
			p, err := r.Next()
			if err != nil {
				return
			}
			if p.Number != n {
				t.Fatalf("packet %d is number %d", n, p.Number)
			}
		}
	})
}
