// A lake between mountains at sunset. (u, v): u from 0 at the left to width / height, v from 0 at the top to 1.
// Every edge is a smooth step, so that the picture is a smooth function and can be compared with one in float64.

constant float3 sun_colour = float3(1.0f, 0.95f, 0.80f);
constant float2 sun_place = float2(0.82f, 0.455f);
constant float shore = 0.76f;

float3 sky(float u, float v) {
    float t = v / 0.66f;
    float3 colour = mix(float3(0.06f, 0.09f, 0.26f), float3(0.56f, 0.25f, 0.44f), smoothstep(0.0f, 0.70f, t));
    colour = mix(colour, float3(1.0f, 0.62f, 0.32f), smoothstep(0.40f, 1.05f, t));
    // Thin clouds lie in two bands; they are lit from below.
    float streak = sin(58.0f * v + 2.5f * sin(3.1f * u + 1.0f) + 1.4f * sin(8.3f * u + 17.0f * v));
    float high = (v - 0.17f) / 0.07f, low = (v - 0.33f) / 0.08f;
    float cover = smoothstep(-0.2f, 1.1f, streak) * (0.35f * exp(-high * high) + 0.55f * exp(-low * low));
    colour = mix(colour, float3(1.0f, 0.66f, 0.52f), cover);
    float distance_to_sun = length(float2(u, v) - sun_place);
    colour += float3(0.42f, 0.22f, 0.08f) * exp(-5.0f * distance_to_sun);
    colour += float3(0.35f, 0.28f, 0.16f) * exp(-90.0f * distance_to_sun * distance_to_sun);
    return mix(colour, sun_colour, 1.0f - smoothstep(0.050f, 0.055f, distance_to_sun));
}

// Five ridges, the nearer the lower and the darker.
float3 mountains(float u, float v, float3 behind) {
    float3 colour = behind;
    for (int k = 0; k < 5; k++) {
        float near = float(k) / 4.0f, f = 3.0f + 1.7f * float(k), p = 1.3f + 2.9f * float(k);
        float height = 0.085f - 0.045f * near;
        float crest = 0.53f + 0.20f * near - height * (sin(f * u + p) + 0.45f * sin(2.7f * f * u + 1.9f * p) +
                                                       0.22f * sin(7.3f * f * u + p * p) + 0.1f * sin(17.0f * f * u));
        float3 rock = mix(float3(0.80f, 0.47f, 0.44f), float3(0.035f, 0.05f, 0.10f), sqrt(near));
        // Mist gathers at the foot of each ridge.
        rock += float3(0.16f, 0.10f, 0.08f) * (1.0f - near) * smoothstep(0.0f, 0.20f, v - crest);
        colour = mix(colour, rock, smoothstep(-0.0022f, 0.0022f, v - crest));
    }
    return colour;
}

float3 landscape(float u, float v) {
    // The lake mirrors what is above the shore, stretched and broken by waves that grow towards us.
    float depth = max(v - shore, 0.0f);
    float wave = sin(260.0f * v / (1.0f + 4.0f * depth) + 3.0f * sin(7.0f * u) + 5.0f * u);
    float mirror_u = u + 0.10f * depth * wave;
    float mirror_v = min(v, shore - 2.2f * depth + 0.10f * depth * wave);
    float3 colour = mountains(mirror_u, mirror_v, sky(mirror_u, mirror_v));
    float3 water = colour * (0.86f - 0.5f * depth) + float3(0.02f, 0.01f, 0.05f) + 0.025f * wave * smoothstep(0.0f, 0.1f, depth);
    return mix(colour, water, smoothstep(0.0f, 0.004f, v - shore));
}
