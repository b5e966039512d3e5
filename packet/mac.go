package packet

import (
	"fmt"
	"net"
)

// MAC is an Ethernet address. Its text form is aa:bb:cc:dd:ee:ff, in JSON too.
type MAC [6]byte

// String is the text form.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// MarshalText implements encoding.TextMarshaler.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the text form of a six-byte address. The error names the text.
func (m *MAC) UnmarshalText(text []byte) error {
	a, err := net.ParseMAC(string(text))
	if err != nil {
		return err
	}
	if len(a) != len(m) {
		return fmt.Errorf("%.60q is no Ethernet address; expected six bytes such as 0a:00:00:00:00:01", text)
	}
	copy(m[:], a)
	return nil
}
