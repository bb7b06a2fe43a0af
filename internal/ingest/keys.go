package ingest

// key is a key that means something in one of the payload formats.
type key int

const (
	keyUnknown key = iota - 1
	keyLat
	keyLon
	keyAlt
	keyTS
	keyAccuracy
	keySpeed
	keyHeading
	keyProps
	keyID
	keyDevice
	keyType // OwnTracks, as are those that follow
	keyTst
	keyAcc
	keyVel
	keyCog
	keys int = iota - 1
)

func keyOf(name []byte) key {
	switch string(name) { // compiles to a comparison without a copy
	case "lat":
		return keyLat
	case "lon":
		return keyLon
	case "alt":
		return keyAlt
	case "ts":
		return keyTS
	case "accuracy":
		return keyAccuracy
	case "speed":
		return keySpeed
	case "heading":
		return keyHeading
	case "props":
		return keyProps
	case "id":
		return keyID
	case "device":
		return keyDevice
	case "_type":
		return keyType
	case "tst":
		return keyTst
	case "acc":
		return keyAcc
	case "vel":
		return keyVel
	case "cog":
		return keyCog
	}
	return keyUnknown
}

func (k key) String() string {
	return [...]string{"lat", "lon", "alt", "ts", "accuracy", "speed", "heading", "props",
		"id", "device", "_type", "tst", "acc", "vel", "cog"}[k]
}
