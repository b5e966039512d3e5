package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
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
		{"text", []byte("cookie=0x1, table=Classifier, priority=200"), "in.pcap: no capture: Unknown magic"},
		{"half a header", whole[:20], "in.pcap: no capture: unexpected EOF"},
		{"wireless", wifi, "in.pcap: link type 802.11: only Ethernet"},
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
