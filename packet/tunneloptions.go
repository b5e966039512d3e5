package packet

import "encoding/hex"

// TunnelOptions are the options of a Geneve header in wire format. Each has its class, type and
// length in 4 bytes, then its data (RFC 8926, section 3.5). It is "" for none. A frame from a
// tunnel has them only if its port keeps them. Their text is hexadecimal digits.
type TunnelOptions string

const (
	optionHead = 4
	// MaxTunnelOptions is the largest size of all options of a header, in bytes.
	MaxTunnelOptions = 63 * 4
)

// NextOption returns the first option and the options behind it. ok is false at the end, where
// rest is empty, and at an option that does not fit, where rest is not empty.
func NextOption[T ~string | ~[]byte](all T) (class uint16, kind uint8, data, rest T, ok bool) {
	if len(all) < optionHead {
		return 0, 0, data, all, false
	}
	n := optionHead + int(all[3]&0x1f)*4
	if n > len(all) {
		return 0, 0, data, all, false
	}
	return uint16(all[0])<<8 | uint16(all[1]), all[2], all[optionHead:n], all[n:], true
}

// CriticalOption reports whether a receiver that does not know an option's type must drop the
// packet.
func CriticalOption(kind uint8) bool { return kind&0x80 != 0 }

// AppendOption appends an option. Its data is a multiple of 4 bytes, at most 124.
func AppendOption(b []byte, class uint16, kind uint8, data []byte) []byte {
	b = append(b, byte(class>>8), byte(class), kind, byte(len(data)/4))
	return append(b, data...)
}

// MarshalText implements encoding.TextMarshaler.
func (o TunnelOptions) MarshalText() ([]byte, error) {
	return []byte(hex.EncodeToString([]byte(o))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. It refuses text that is not hexadecimal.
func (o *TunnelOptions) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	*o = TunnelOptions(b)
	return err
}
