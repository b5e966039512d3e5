package web

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Admission. A token admits one browser once. It comes in the URL that `antrail page` prints,
// and the next token replaces it after one visit. So a URL in a browser's history is worthless.
// The browser gets a cookie that scripts cannot read, and that other sites' requests do not
// carry.
//
// A name in the Host header is refused unless it is localhost. With DNS rebinding, another
// site's name resolves to this address, and its page's requests carry that name.

const (
	// entrance is where a token is exchanged.
	entrance = "/enter"
	// maxSessions is how many browsers may be admitted; the oldest gives way.
	maxSessions = 16
	// sessionLife is how long a browser may stay.
	sessionLife = 24 * time.Hour
)

// secret is a hashed token or cookie. Comparing hashes does not reveal how much of a guess was
// right.
type secret [sha256.Size]byte

func hashed(text string) secret { return sha256.Sum256([]byte(text)) }

// door admits browsers. Several goroutines may use it.
type door struct {
	invite func(token string) error

	mu       sync.Mutex
	token    secret
	open     bool // there is a token
	sessions []session
}

// session is an admitted browser.
type session struct {
	key  secret
	ends time.Time
}

// renew makes another token, and calls invite with it.
func (d *door) renew() error {
	token := rand.Text()
	err := d.invite(token)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.token, d.open = hashed(token), err == nil
	return err
}

// enter exchanges a token for a cookie.
func (d *door) enter(w http.ResponseWriter, r *http.Request) {
	if !d.knows(r) {
		key := d.takeToken(r.URL.Query().Get("token"))
		if key == "" {
			http.Error(w, "401: this URL was used before, or its agent has ended; antrail page prints a valid one", http.StatusUnauthorized)
			return
		}
		if err := d.renew(); err != nil {
			http.Error(w, "there is no token for the next browser: "+err.Error(), http.StatusInternalServerError)
			return
		}
		http.SetCookie(w, &http.Cookie{
			Name: cookieName(r.Host), Value: key, Path: "/", MaxAge: int(sessionLife / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	}
	// A redirect would belong to the site with the clicked link, and come without the cookie.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write([]byte(`<!doctype html><html lang="en"><title>antrail</title><link rel="icon" href="/icon.svg"><meta http-equiv="refresh" content="0;url=/"><p><a href="/">antrail</a></p></html>`))
}

// takeToken uses up a token, and returns the cookie of a new session; "" for any other token.
func (d *door) takeToken(token string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.open || hashed(token) != d.token {
		return ""
	}
	d.open = false
	key := rand.Text()
	d.sessions = append(d.sessions, session{hashed(key), time.Now().Add(sessionLife)})
	if len(d.sessions) > maxSessions {
		d.sessions = d.sessions[1:]
	}
	return key
}

// knows says whether a request comes from an admitted browser.
func (d *door) knows(r *http.Request) bool {
	c, err := r.Cookie(cookieName(r.Host))
	if err != nil {
		return false
	}
	key := hashed(c.Value)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sessions {
		if s.key == key {
			return time.Now().Before(s.ends)
		}
	}
	return false
}

// cookieName distinguishes pages at several ports of one host: cookies do not depend on the
// port.
func cookieName(host string) string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return "antrail"
	}
	return "antrail-" + port
}

// namesAddress says whether a Host header is an IP address or localhost, with or
// without a port.
func namesAddress(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if err == nil && strings.Trim(port, "0123456789") != "" {
		return false
	}
	_, err = netip.ParseAddr(name)
	return err == nil || name == "localhost"
}

// URL is the address with a token that admits a browser.
func URL(address, token string) string {
	u := url.URL{Scheme: "http", Host: address, Path: entrance, RawQuery: url.Values{"token": {token}}.Encode()}
	return u.String()
}
