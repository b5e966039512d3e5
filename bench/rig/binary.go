package rig

import (
	"cmp"
	"strings"

	"github.com/antrail/antrail/internal/version"
)

// Build is the program that was measured, as `antrail version` shows it.
type Build struct {
	// Version is v1.2.3, or Go's pseudo-version of a commit without a tag. It is empty in results of older programs; so is Commit.
	Version string `json:"version,omitempty"`
	// Commit is the revision that was built. It is empty if the program was built outside a checkout.
	Commit string `json:"commit,omitempty"`
	// Modified says that files differed from the commit.
	Modified bool `json:"modified,omitempty"`
}

// thisBuild is that of the running program.
func thisBuild() Build {
	b := version.Of()
	return Build{Version: b.Version, Commit: b.Commit, Modified: strings.HasSuffix(b.Version, "+dirty")}
}

// String is the version and the commit; "unknown build" for a result that has neither.
func (b Build) String() string {
	text := cmp.Or(b.Version, "unknown build")
	if b.Commit != "" {
		text += " " + b.Commit[:min(len(b.Commit), 12)]
	}
	if b.Modified {
		text += " with changes"
	}
	return text
}
