package config

import "github.com/antrail/antrail/door"

// The drivers of a pod's port, as Port.Driver names them (switchd).
const (
	DriverAuto     = door.DriverAuto
	DriverAFXDP    = door.DriverAFXDP
	DriverAFPacket = door.DriverAFPacket
	// DriverTap makes the link, a tap. TrafficControls and application-layer policies send
	// traffic to taps.
	DriverTap = door.DriverTap
)

// KnownDriver says whether a pod's port can have this driver.
func KnownDriver(name string) bool {
	return name == DriverAuto || name == DriverAFXDP || name == DriverAFPacket
}
